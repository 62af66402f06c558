// SPDX-License-Identifier: Apache-2.0
//
// What the fake nvJPEG's handles are, and the checks that every call begins
// with.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/nvjpeg.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/nvjpeg_image.h"

namespace leat::cuda {
// What the handles are. `magic` is cleared when destroyed.
struct NvjpegHandleTag {
  uint64_t magic;
  NvjpegBackend backend;
  Flags flags;
};
struct NvjpegStateTag {
  uint64_t magic;
  int images = 0;
  NvjpegFormat format = NvjpegFormat::kRgbi;
  std::shared_ptr<std::atomic<int>> pending =
      std::make_shared<std::atomic<int>>(0);
  fake_cuda::Pixels pixels;  // of the decoupled phases
  bool pinned_buffer = false, device_buffer = false;
};
struct NvjpegStreamTag {
  uint64_t magic;
  std::vector<uint8_t> data;
  fake_cuda::JpegInfo info;
};
struct NvjpegParamsTag {
  uint64_t magic;
  fake_cuda::DecodeOptions options;
};
struct NvjpegDecoderTag {
  uint64_t magic;
  NvjpegBackend backend;
};
struct NvjpegPinnedBufferTag {
  uint64_t magic;
};
struct NvjpegDeviceBufferTag {
  uint64_t magic;
};
}  // namespace leat::cuda

namespace leat::fake_cuda {

inline constexpr uint64_t kMagic = 0x6c6561746a706567;

template <class T>
bool IsLive(T* object) {
  if (object != nullptr && object->magic == kMagic) return true;
  fake_cuda_violate("a handle that does not exist");
  return false;
}

template <class T>
cuda::NvjpegResult Destroy(const char* what, T* object) {
  if (!IsLive(object)) return cuda::NvjpegResult::kInvalidParameter;
  object->magic = 0;
  delete object;
  fake_cuda_add(what, -1);
  return cuda::NvjpegResult::kSuccess;
}

template <class T>
cuda::NvjpegResult Made(const char* what, T* object, T** out) {
  fake_cuda_add(what, 1);
  *out = object;
  return cuda::NvjpegResult::kSuccess;
}

inline bool HasContext() {
  if (fake_cuda_has_context()) return true;
  fake_cuda_violate("no context is current");
  return false;
}

inline bool IsHardware(cuda::NvjpegBackend backend) {
  return backend == cuda::NvjpegBackend::kHardware ||
         backend == cuda::NvjpegBackend::kHardwareDevice;
}

// Whether the state's last work is done, as it must be.
inline bool IsFree(cuda::NvjpegStateTag* state) {
  if (*state->pending == 0) return true;
  fake_cuda_violate("a state is used while it decodes");
  return false;
}

}  // namespace leat::fake_cuda

// Counts the call of the function that it stands in; returns what was ordered.
#define FAKE_NVJPEG_ENTER()                                  \
  do {                                                       \
    int code_ = 0;                                           \
    if (!fake_cuda_enter(__func__, &code_))                  \
      return static_cast<::leat::cuda::NvjpegResult>(code_); \
  } while (false)
