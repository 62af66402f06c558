// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver.h"

#include <charconv>

#include "core/status.h"

namespace leat::cuda {
namespace {

constexpr char kPayload[] = "leat.cuda.result";

std::vector<Binding> Bindings(Driver* d) {
  return {
      {"cuInit", At(&d->Init)},
      {"cuDriverGetVersion", At(&d->DriverGetVersion)},
      {"cuGetErrorName", At(&d->GetErrorName)},
      {"cuGetErrorString", At(&d->GetErrorString)},
      {"cuDeviceGetCount", At(&d->DeviceGetCount)},
      {"cuDeviceGet", At(&d->DeviceGet)},
      {"cuDeviceGetName", At(&d->DeviceGetName)},
      {"cuDeviceGetUuid_v2", At(&d->DeviceGetUuid)},
      {"cuDeviceGetAttribute", At(&d->DeviceGetAttribute)},
      {"cuDeviceTotalMem_v2", At(&d->DeviceTotalMem)},
      {"cuDeviceGetPCIBusId", At(&d->DeviceGetPCIBusId)},
      {"cuDevicePrimaryCtxRetain", At(&d->DevicePrimaryCtxRetain)},
      {"cuDevicePrimaryCtxSetFlags_v2", At(&d->DevicePrimaryCtxSetFlags)},
      {"cuDevicePrimaryCtxRelease_v2", At(&d->DevicePrimaryCtxRelease)},
      {"cuCtxSetCurrent", At(&d->CtxSetCurrent)},
      {"cuCtxGetCurrent", At(&d->CtxGetCurrent)},
      {"cuCtxPushCurrent_v2", At(&d->CtxPushCurrent)},
      {"cuCtxPopCurrent_v2", At(&d->CtxPopCurrent)},
      {"cuCtxSynchronize", At(&d->CtxSynchronize)},
      {"cuMemAlloc_v2", At(&d->MemAlloc)},
      {"cuMemFree_v2", At(&d->MemFree)},
      {"cuMemHostAlloc", At(&d->MemHostAlloc)},
      {"cuMemFreeHost", At(&d->MemFreeHost)},
      {"cuMemHostRegister_v2", At(&d->MemHostRegister)},
      {"cuMemHostUnregister", At(&d->MemHostUnregister)},
      {"cuMemGetInfo_v2", At(&d->MemGetInfo)},
      {"cuMemcpyHtoDAsync_v2", At(&d->MemcpyHtoDAsync)},
      {"cuMemcpyDtoHAsync_v2", At(&d->MemcpyDtoHAsync)},
      {"cuMemcpyDtoDAsync_v2", At(&d->MemcpyDtoDAsync)},
      {"cuMemsetD8Async", At(&d->MemsetD8Async)},
      {"cuStreamCreate", At(&d->StreamCreate)},
      {"cuStreamDestroy_v2", At(&d->StreamDestroy)},
      {"cuStreamSynchronize", At(&d->StreamSynchronize)},
      {"cuStreamWaitEvent", At(&d->StreamWaitEvent)},
      {"cuStreamQuery", At(&d->StreamQuery)},
      {"cuEventCreate", At(&d->EventCreate)},
      {"cuEventDestroy_v2", At(&d->EventDestroy)},
      {"cuEventRecord", At(&d->EventRecord)},
      {"cuEventQuery", At(&d->EventQuery)},
      {"cuEventSynchronize", At(&d->EventSynchronize)},
      {"cuEventElapsedTime", At(&d->EventElapsedTime)},
      {"cuModuleLoadData", At(&d->ModuleLoadData)},
      {"cuModuleUnload", At(&d->ModuleUnload)},
      {"cuModuleGetFunction", At(&d->ModuleGetFunction)},
      {"cuFuncGetAttribute", At(&d->FuncGetAttribute)},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
       At(&d->OccupancyMaxActiveBlocksPerMultiprocessor)},
      {"cuLaunchKernel", At(&d->LaunchKernel)},
      {"cuLaunchHostFunc", At(&d->LaunchHostFunc)},
      {"cuMemGetAllocationGranularity", At(&d->MemGetAllocationGranularity),
       false},
      {"cuMemCreate", At(&d->MemCreate), false},
      {"cuMemRelease", At(&d->MemRelease), false},
      {"cuMemAddressReserve", At(&d->MemAddressReserve), false},
      {"cuMemAddressFree", At(&d->MemAddressFree), false},
      {"cuMemMap", At(&d->MemMap), false},
      {"cuMemUnmap", At(&d->MemUnmap), false},
      {"cuMemSetAccess", At(&d->MemSetAccess), false},
      {"cuMemExportToShareableHandle", At(&d->MemExportToShareableHandle),
       false},
      {"cuMemImportFromShareableHandle", At(&d->MemImportFromShareableHandle),
       false},
      {"cuMemGetAllocationPropertiesFromHandle",
       At(&d->MemGetAllocationPropertiesFromHandle), false},
      {"cuStreamIsCapturing", At(&d->StreamIsCapturing), false},
      {"cuThreadExchangeStreamCaptureMode",
       At(&d->ThreadExchangeStreamCaptureMode), false},
  };
}

// Returns the text of `get` for `result`, or `otherwise`.
std::string Text(Result (*get)(Result, const char**), Result result,
                 std::string otherwise) {
  const char* text = nullptr;
  if (get(result, &text) != Result::kSuccess || text == nullptr)
    return otherwise;
  return text;
}

absl::StatusCode CodeOf(Result result) {
  if (result == Result::kOutOfMemory)
    return absl::StatusCode::kResourceExhausted;
  if (PoisonsContext(result)) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

}  // namespace

bool Driver::HasVirtualMemory() const {
  return MemGetAllocationGranularity && MemCreate && MemRelease &&
         MemAddressReserve && MemAddressFree && MemMap && MemUnmap &&
         MemSetAccess && MemExportToShareableHandle &&
         MemImportFromShareableHandle && MemGetAllocationPropertiesFromHandle;
}

RelaxedCapture::RelaxedCapture(const Driver& driver) : driver_(driver) {
  if (driver_.ThreadExchangeStreamCaptureMode == nullptr) return;
  CaptureMode mode = CaptureMode::kRelaxed;
  if (driver_.ThreadExchangeStreamCaptureMode(&mode) == Result::kSuccess)
    before_ = mode;
}

RelaxedCapture::~RelaxedCapture() {
  if (before_) driver_.ThreadExchangeStreamCaptureMode(&*before_);
}

absl::StatusOr<std::shared_ptr<const Driver>> LoadDriver(
    const LibrarySearch& search) {
  ASSIGN_OR_RETURN(
      const Library library,
      Library::Open("CUDA driver (libcuda.so.1)", DriverCandidates(search)));
  auto driver = std::make_shared<Driver>();
  driver->path = library.path();
  RETURN_IF_ERROR(Bind(library, Bindings(driver.get())));
  return std::shared_ptr<const Driver>(std::move(driver));
}

absl::Status Check(const Driver& driver, Result result, std::string_view what) {
  if (result == Result::kSuccess) return absl::OkStatus();
  const int number = static_cast<int>(result);
  absl::Status status =
      MakeStatus(CodeOf(result), "{}: {} ({}): {}", what,
                 Text(driver.GetErrorName, result, "unknown CUDA error"),
                 number, Text(driver.GetErrorString, result, "no text"));
  status.SetPayload(kPayload, absl::Cord(std::to_string(number)));
  return status;
}

std::optional<Result> ResultOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  int number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return static_cast<Result>(number);
}

bool PoisonsContext(Result result) {
  switch (result) {
    case Result::kDeinitialized:
    case Result::kDeviceUnavailable:
    case Result::kEccUncorrectable:
    case Result::kNvlinkUncorrectable:
    case Result::kContained:
    case Result::kIllegalState:
    case Result::kIllegalAddress:
    case Result::kLaunchTimeout:
    case Result::kContextIsDestroyed:
    case Result::kAssert:
    case Result::kHardwareStackError:
    case Result::kIllegalInstruction:
    case Result::kMisalignedAddress:
    case Result::kInvalidAddressSpace:
    case Result::kInvalidPc:
    case Result::kLaunchFailed:
    case Result::kTensorMemoryLeak:
    case Result::kMpsRpcFailure:
    case Result::kMpsClientTerminated:
    case Result::kUnknown:
      return true;
    default:
      return false;
  }
}

bool PoisonsContext(const absl::Status& status) {
  const std::optional<Result> result = ResultOf(status);
  return result.has_value() && PoisonsContext(*result);
}

}  // namespace leat::cuda
