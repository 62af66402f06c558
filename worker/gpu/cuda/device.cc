// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/device.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/gpu/cuda/kernel_image.h"
#include "worker/gpu/cuda/memory.h"
#include "worker/gpu/cuda/pinned_ranges.h"
#include "worker/gpu/cuda/queue.h"
#include "worker/gpu/device/error.h"

namespace leat::worker {
namespace {

// Parses "0-3,8" as a set; the set is empty if the text is malformed.
cpu_set_t CoresOf(std::string_view list) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0, last = 0;
    auto parsed = std::from_chars(at, end, first);
    last = first;
    if (parsed.ptr < end && *parsed.ptr == '-')
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc()) break;
    for (int core = first; core <= std::min(last, CPU_SETSIZE - 1); ++core)
      CPU_SET(core, &cores);
    at = parsed.ptr + 1;
  }
  return cores;
}

// Returns the cores of the GPU's NUMA node, as Linux lists them.
std::string CoresNear(std::string pci_bus_id) {
  for (char& c : pci_bus_id)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::ifstream file("/sys/bus/pci/devices/" + pci_bus_id + "/local_cpulist");
  std::string list;
  std::getline(file, list);
  return list;
}

// True for results that CUDA documents for a device that is unavailable,
// missing, or not ready, and for unknown ones.
bool MayHaveGone(cuda::Result result) {
  return result == cuda::Result::kDeviceUnavailable ||
         result == cuda::Result::kNoDevice ||
         result == cuda::Result::kInvalidDevice ||
         result == cuda::Result::kSystemNotReady ||
         result == cuda::Result::kUnknown;
}

}  // namespace

CudaDevice::CudaDevice(std::shared_ptr<const cuda::Driver> driver,
                       std::shared_ptr<const cuda::Nvjpeg> nvjpeg, int index)
    : driver_(std::move(driver)), nvjpeg_(std::move(nvjpeg)) {
  info_.index = index;
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(
    std::shared_ptr<const cuda::Driver> driver,
    std::shared_ptr<const cuda::Nvjpeg> nvjpeg, int index) {
  std::unique_ptr<CudaDevice> gpu(
      new CudaDevice(std::move(driver), std::move(nvjpeg), index));
  RETURN_IF_ERROR(gpu->Describe());
  const cuda::Driver& d = *gpu->driver_;
  // Threads that wait for the GPU sleep, also within nvJPEG. If other code made
  // the context before, that code's way of waiting stays.
  if (const absl::Status status = gpu->Check(
          d.DevicePrimaryCtxSetFlags(gpu->device_, cuda::kContextBlockingSync),
          "cuDevicePrimaryCtxSetFlags");
      !status.ok())
    LOG_INFO("gpu.waits_spinning gpu={} error=\"{}\"", index, Message(status));
  RETURN_IF_ERROR(gpu->Retain());
  RETURN_IF_ERROR(gpu->MakeCurrent());
  RETURN_IF_ERROR(gpu->LoadKernels());
  gpu->OpenNvjpeg();
  return gpu;
}

absl::Status CudaDevice::Retain() {
  const cuda::Result result =
      driver_->DevicePrimaryCtxRetain(&context_, device_);
  absl::Status status = Check(result, "cuDevicePrimaryCtxRetain");
  if (!status.ok()) context_ = nullptr;
  if (result == cuda::Result::kDeviceUnavailable)
    return Annotate(status,
                    "another process has the GPU for itself (compute mode "
                    "exclusive: nvidia-smi -c DEFAULT lets several use it)");
  return status;
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  (void)MakeCurrent();
  if (module_ != nullptr)
    Released(driver_->ModuleUnload(module_), "cuModuleUnload");
  Released(driver_->DevicePrimaryCtxRelease(device_),
           "cuDevicePrimaryCtxRelease");
}

absl::Status CudaDevice::Describe() {
  const cuda::Driver& d = *driver_;
  RETURN_IF_ERROR(Check(d.DeviceGet(&device_, info_.index), "cuDeviceGet"));
  std::array<char, 256> name{};
  RETURN_IF_ERROR(Check(
      d.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_),
      "cuDeviceGetName"));
  info_.name = name.data();
  cuda::Uuid uuid;
  RETURN_IF_ERROR(Check(d.DeviceGetUuid(&uuid, device_), "cuDeviceGetUuid"));
  for (const unsigned char byte : uuid.bytes)
    info_.uuid += fmt::format("{:02x}", byte);
  size_t bytes = 0;
  RETURN_IF_ERROR(Check(d.DeviceTotalMem(&bytes, device_), "cuDeviceTotalMem"));
  info_.memory_bytes = bytes;
  return DescribeAbilities();
}

absl::Status CudaDevice::DescribeAbilities() {
  const cuda::Driver& d = *driver_;
  int version = 0;
  RETURN_IF_ERROR(Check(d.DriverGetVersion(&version), "cuDriverGetVersion"));
  info_.driver_version =
      fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  int major = 0, minor = 0;
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(
          &major, cuda::DeviceAttribute::kComputeCapabilityMajor, device_),
      "cuDeviceGetAttribute"));
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(
          &minor, cuda::DeviceAttribute::kComputeCapabilityMinor, device_),
      "cuDeviceGetAttribute"));
  info_.compute = fmt::format("{}.{}", major, minor);
  int imports = 0;
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(&imports,
                           cuda::DeviceAttribute::kPosixFileDescriptorSupported,
                           device_),
      "cuDeviceGetAttribute"));
  imports_ = imports != 0 && d.HasVirtualMemory();
  std::array<char, 32> bus{};
  if (d.DeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()) - 1,
                          device_) == cuda::Result::kSuccess)
    cores_ = CoresNear(bus.data());
  return absl::OkStatus();
}

absl::Status CudaDevice::LoadKernels() {
  const cuda::Driver& d = *driver_;
  RETURN_IF_ERROR(Check(
      d.ModuleLoadData(&module_, KernelImage().data()),
      fmt::format("cuModuleLoadData of Leat's kernels, which want compute "
                  "capability 7.5 and a driver for CUDA 12, or later; here are "
                  "{} and a driver for {}",
                  info_.compute, info_.driver_version)
          .c_str()));
  for (size_t i = 0; i < kernels_.size(); ++i) {
    RETURN_IF_ERROR(Check(d.ModuleGetFunction(&kernels_[i], module_,
                                              NameOf(static_cast<KernelId>(i))),
                          "cuModuleGetFunction"));
    // Reading an attribute loads the kernel. Otherwise the driver would load it
    // when the first group needs it.
    int registers = 0;
    RETURN_IF_ERROR(
        Check(d.FuncGetAttribute(
                  &registers, cuda::FunctionAttribute::kRegisters, kernels_[i]),
              "cuFuncGetAttribute"));
  }
  return absl::OkStatus();
}

void CudaDevice::OpenNvjpeg() {
  if (nvjpeg_ == nullptr) return;
  auto opened = NvjpegDevice::Open(nvjpeg_.get(), this, &info_);
  if (opened.ok())
    nvjpeg_device_ = *std::move(opened);
  else
    LOG_WARN("gpu.no_nvjpeg gpu={} error=\"{}\" note=\"class exact only\"",
             info_.index, Message(opened.status()));
}

std::optional<DecoderClass> CudaDevice::decoder_class() const {
  if (nvjpeg_device_ == nullptr) return std::nullopt;
  return DecoderClass::kNvjpeg;
}

absl::Status CudaDevice::MakeCurrent() const {
  return Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent");
}

void CudaDevice::NearThread() const {
  cpu_set_t near = CoresOf(cores_), allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_AND(&near, &near, &allowed);
  if (CPU_COUNT(&near) > 0)
    pthread_setaffinity_np(pthread_self(), sizeof near, &near);
}

absl::StatusOr<DeviceAddress> CudaDevice::Allocate(uint64_t bytes) const {
  cuda::DevicePtr memory = 0;
  RETURN_IF_ERROR(Check(driver_->MemAlloc(&memory, bytes), "cuMemAlloc"));
  return DeviceAddress(memory);
}

void CudaDevice::Free(DeviceAddress memory) const {
  Released(driver_->MemFree(memory.number()), "cuMemFree");
}

Device::MemoryInfo CudaDevice::memory() const {
  size_t free_bytes = 0, all_bytes = 0;
  if (!Check(driver_->MemGetInfo(&free_bytes, &all_bytes), "cuMemGetInfo").ok())
    return {.free_bytes = 0, .all_bytes = info_.memory_bytes};
  return {.free_bytes = free_bytes, .all_bytes = all_bytes};
}

absl::StatusOr<std::byte*> CudaDevice::AllocatePinned(size_t bytes) const {
  void* memory = nullptr;
  RETURN_IF_ERROR(
      Check(driver_->MemHostAlloc(&memory, bytes, cuda::kHostAllocPortable),
            "cuMemHostAlloc"));
  AddPinned(memory, bytes);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::FreePinned(std::byte* memory) const {
  RemovePinned(memory);
  Released(driver_->MemFreeHost(memory), "cuMemFreeHost");
}

absl::Status CudaDevice::Pin(std::byte* memory, uint64_t bytes) const {
  RETURN_IF_ERROR(Check(
      driver_->MemHostRegister(memory, bytes, cuda::kHostRegisterPortable),
      "cuMemHostRegister"));
  AddPinned(memory, bytes);
  return absl::OkStatus();
}

void CudaDevice::Unpin(std::byte* memory) const {
  RemovePinned(memory);
  Released(driver_->MemHostUnregister(memory), "cuMemHostUnregister");
}

absl::StatusOr<std::unique_ptr<MappedMemory>> CudaDevice::Import(
    int fd, uint64_t bytes) const {
  return CudaMemory::Map(*this, fd, bytes);
}

absl::StatusOr<std::unique_ptr<DeviceQueue>> CudaDevice::MakeQueue() const {
  return CudaQueue::Create(*this);
}

absl::Status CudaDevice::WaitStream(cuda::Stream stream) const {
  return Check(driver_->StreamSynchronize(stream), "cuStreamSynchronize");
}

absl::Status CudaDevice::Check(cuda::Result result, const char* call) const {
  absl::Status status = cuda::Check(*driver_, result, call);
  const bool gone = context_ != nullptr && MayHaveGone(result);
  if (gone)
    status = Annotate(status,
                      "it may have been reset, have fallen off the bus or have "
                      "lost its MIG instance (nvidia-smi and the kernel's log "
                      "say more)");
  if (cuda::PoisonsContext(result)) status = Poisoned(std::move(status));
  if (gone || IsPoisoned(status)) lost_ = true;
  return status;
}

void CudaDevice::Released(cuda::Result result, const char* call) const {
  SayNotReleased(Check(result, call));
}

void CudaDevice::Released(cuda::NvjpegResult result, const char* call) const {
  SayNotReleased(cuda::Check(result, call));
}

void CudaDevice::SayNotReleased(const absl::Status& status) const {
  if (status.ok() || lost_ || said_.exchange(true)) return;
  LOG_WARN("gpu.not_released gpu={} error=\"{}\" note=\"said once\"",
           info_.index, Message(status));
}

}  // namespace leat::worker
