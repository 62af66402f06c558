// SPDX-License-Identifier: Apache-2.0
//
// Devices and contexts of the fake driver.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "fmt/format.h"
#include "tests/support/fake_cuda/state.h"

using leat::MutexLock;
using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

namespace leat::fake_cuda {
namespace {

// A context's handle is its device's number plus this base.
constexpr uint64_t kContextBase = 0x100;

// Aligned, so that no thread's block of this library's variables begins 16 bytes
// into a page. ThreadSanitizer of clang 14 takes such a block for one of glibc
// 2.19, reads its size from the bytes before it, and ends the process.
alignas(32) thread_local std::vector<uint64_t> current_contexts;

struct Named {
  int code;
  const char* name;
  const char* text;
};
constexpr Named kResults[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for the device"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX of a newer toolchain"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Named* NamedOf(Result result) {
  for (const Named& named : kResults)
    if (named.code == static_cast<int>(result)) return &named;
  return nullptr;
}

bool IsDevice(State& state, Device device)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu) {
  return device >= 0 &&
         static_cast<uint64_t>(device) < state.settings["devices"];
}

// Records what a context leaves behind as a violation, and drops it.
void DropContext(State& state, int device)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu) {
  size_t left = 0;
  for (const auto& [at, range] : state.allocations)
    left += range.device == device;
  for (const auto& [handle, entry] : state.streams)
    left += entry.device == device && handle > 0x1000;
  for (const auto& [handle, event] : state.events)
    left += event.device == device;
  for (const auto& [handle, module] : state.modules)
    left += module.device == device;
  if (left > 0)
    state.Violate("cuDevicePrimaryCtxRelease_v2",
                  fmt::format("{} things of the context still live", left));
}

}  // namespace

int CurrentDevice() {
  if (current_contexts.empty() || current_contexts.back() == 0) return -1;
  const int device = static_cast<int>(current_contexts.back() - kContextBase);
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.contexts.find(device);
  if (found == state.contexts.end() || found->second == 0) {
    state.Violate("context", "the current context was released");
    return -1;
  }
  return device;
}

}  // namespace leat::fake_cuda

extern "C" {

Result cuInit(Flags flags) {
  State& state = GetState();
  if (const Result entered = state.Enter(__func__, false);
      entered != Result::kSuccess)
    return entered;
  MutexLock lock(&state.mu);
  if (flags != 0) return Result::kInvalidValue;
  if (state.settings["devices"] == 0) return Result::kNoDevice;
  state.initialised = true;
  return Result::kSuccess;
}

Result cuDriverGetVersion(int* version) {
  State& state = GetState();
  if (const Result entered = state.Enter(__func__, false);
      entered != Result::kSuccess)
    return entered;
  MutexLock lock(&state.mu);
  *version = static_cast<int>(state.settings["version"]);
  return Result::kSuccess;
}

Result cuGetErrorName(Result result, const char** name) {
  FAKE_ENTER();
  const auto* named = NamedOf(result);
  if (named == nullptr) return Result::kInvalidValue;
  *name = named->name;
  return Result::kSuccess;
}

Result cuGetErrorString(Result result, const char** text) {
  FAKE_ENTER();
  const auto* named = NamedOf(result);
  if (named == nullptr) return Result::kInvalidValue;
  *text = named->text;
  return Result::kSuccess;
}

Result cuDeviceGetCount(int* count) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  *count = static_cast<int>(state.settings["devices"]);
  return Result::kSuccess;
}

Result cuDeviceGet(Device* device, int ordinal) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, ordinal)) return Result::kInvalidDevice;
  *device = ordinal;
  return Result::kSuccess;
}

Result cuDeviceGetName(char* name, int bytes, Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  std::snprintf(name, static_cast<size_t>(bytes), "%s", state.name.c_str());
  return Result::kSuccess;
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  std::memcpy(uuid->bytes, "leat fake gpu  ", 16);
  uuid->bytes[15] = static_cast<unsigned char>(device);
  return Result::kSuccess;
}

Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute,
                            Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  const int compute = static_cast<int>(state.settings["compute"]);
  switch (attribute) {
    case DeviceAttribute::kComputeCapabilityMajor:
      *value = compute / 10;
      return Result::kSuccess;
    case DeviceAttribute::kComputeCapabilityMinor:
      *value = compute % 10;
      return Result::kSuccess;
    case DeviceAttribute::kMultiprocessorCount:
      *value = 2;
      return Result::kSuccess;
    case DeviceAttribute::kVirtualMemorySupported:
    case DeviceAttribute::kPosixFileDescriptorSupported:
      *value = 1;
      return Result::kSuccess;
    default:
      *value = 0;
      return Result::kSuccess;
  }
}

Result cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  *bytes = state.settings["memory"];
  return Result::kSuccess;
}

Result cuDeviceGetPCIBusId(char* id, int bytes, Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  std::snprintf(id, static_cast<size_t>(bytes), "FAFA:%02X:00.0", device);
  return Result::kSuccess;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  ++state.contexts[device];
  ++state.counts["contexts"];
  *context = AsHandle<Context>(kContextBase + static_cast<uint64_t>(device));
  return Result::kSuccess;
}

Result cuDevicePrimaryCtxSetFlags_v2(Device device, Flags flags) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!IsDevice(state, device)) return Result::kInvalidDevice;
  if (flags > 0xff) return Result::kInvalidValue;
  state.context_flags = flags;
  return Result::kSuccess;
}

Result cuDevicePrimaryCtxRelease_v2(Device device) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.contexts.find(device);
  if (found == state.contexts.end() || found->second == 0)
    return state.Violate(__func__, "released more often than retained",
                         Result::kInvalidContext);
  --state.counts["contexts"];
  if (--found->second == 0) DropContext(state, device);
  return Result::kSuccess;
}

Result cuCtxSetCurrent(Context context) {
  FAKE_ENTER();
  if (!current_contexts.empty()) current_contexts.pop_back();
  if (context != nullptr) current_contexts.push_back(HandleOf(context));
  return Result::kSuccess;
}

Result cuCtxGetCurrent(Context* context) {
  FAKE_ENTER();
  *context = current_contexts.empty()
                 ? nullptr
                 : AsHandle<Context>(current_contexts.back());
  return Result::kSuccess;
}

Result cuCtxPushCurrent_v2(Context context) {
  FAKE_ENTER();
  if (context == nullptr) return Result::kInvalidContext;
  current_contexts.push_back(HandleOf(context));
  return Result::kSuccess;
}

Result cuCtxPopCurrent_v2(Context* context) {
  FAKE_ENTER();
  if (current_contexts.empty()) {
    State& state = GetState();
    MutexLock lock(&state.mu);
    return state.Violate(__func__, "no context to pop",
                         Result::kInvalidContext);
  }
  if (context != nullptr) *context = AsHandle<Context>(current_contexts.back());
  current_contexts.pop_back();
  return Result::kSuccess;
}

// Fails while a stream of the context is captured, in any mode.
Result cuCtxSynchronize() {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  State& state = GetState();
  std::vector<std::shared_ptr<StreamThread>> threads;
  {
    MutexLock lock(&state.mu);
    for (const auto& capture : state.captures)
      if (capture->device == device)
        return state.Spoil(__func__, capture, Result::kCaptureUnsupported);
    threads = state.Threads(device);
  }
  for (const auto& thread : threads) thread->Drain();
  return Result::kSuccess;
}

}  // extern "C"
