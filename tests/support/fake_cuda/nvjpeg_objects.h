// SPDX-License-Identifier: Apache-2.0
//
// The objects behind the fake nvJPEG's handles, and the checks that every call
// begins with.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/nvjpeg.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/nvjpeg_image.h"

namespace leat::fake_cuda {

// Memory that the fake works in, from the caller's allocators: it grows with
// the decoded images, and every decoding writes all of it.
template <class Allocator>
struct Working {
  Allocator allocator{};
  uint8_t* memory = nullptr;
  size_t bytes = 0;

  bool Grow(size_t wanted, cuda::Stream stream) {
    if (wanted <= bytes) return true;
    Free(stream);
    void* made = nullptr;
    if (allocator.allocate(allocator.context, &made, wanted, stream) != 0)
      return false;
    memory = static_cast<uint8_t*>(made);
    bytes = wanted;
    return true;
  }
  // Passes no size: it is not documented which one nvJPEG passes.
  void Free(cuda::Stream stream) {
    if (memory != nullptr &&
        allocator.free(allocator.context, memory, 0, stream) != 0)
      fake_cuda_violate("an allocator does not take back its memory");
    memory = nullptr;
    bytes = 0;
  }
};
using WorkingDevice = Working<cuda::NvjpegDeviceAllocator>;
using WorkingPinned = Working<cuda::NvjpegPinnedAllocator>;

}  // namespace leat::fake_cuda

namespace leat::cuda {
// The objects behind the handles. `magic` is cleared when destroyed.
struct NvjpegHandleTag {
  uint64_t magic;
  NvjpegBackend backend;
  Flags flags;
  NvjpegDeviceAllocator device{};
  NvjpegPinnedAllocator pinned{};
  // For engines: a thread of their own, which no stream orders.
  std::shared_ptr<void> engines;
};
struct NvjpegPinnedBufferTag;
struct NvjpegDeviceBufferTag;
struct NvjpegStateTag {
  uint64_t magic;
  int images = 0;
  NvjpegFormat format = NvjpegFormat::kRgbi;
  std::shared_ptr<std::atomic<int>> pending =
      std::make_shared<std::atomic<int>>(0);
  fake_cuda::Pixels pixels;  // between decoupled phases
  NvjpegPinnedBufferTag* pinned_buffer = nullptr;
  NvjpegDeviceBufferTag* device_buffer = nullptr;
  fake_cuda::WorkingDevice device;  // for batches
  fake_cuda::WorkingPinned pinned;
  // Made by PreAllocate: for the other images, and twice for its pipeline.
  fake_cuda::WorkingDevice ahead, pipelined;
  bool broken = false;  // half made by PreAllocate
};
struct NvjpegStreamTag {
  uint64_t magic;
  std::vector<uint8_t> data;
  fake_cuda::JpegInfo info;
  bool spoilt = false;  // a parse has failed
};
struct NvjpegParamsTag {
  uint64_t magic;
  fake_cuda::DecodeOptions options;
  bool upright = false;  // its orientation was set to "normal"
};
struct NvjpegDecoderTag {
  uint64_t magic;
  NvjpegBackend backend;
};
struct NvjpegPinnedBufferTag {
  uint64_t magic;
  fake_cuda::WorkingPinned pinned;
  NvjpegStateTag* user = nullptr;  // the state that has it
};
struct NvjpegDeviceBufferTag {
  uint64_t magic;
  fake_cuda::WorkingDevice device;
  NvjpegStateTag* user = nullptr;  // the state that has it
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

// True if the state's last work is done, as it must be.
inline bool IsFree(cuda::NvjpegStateTag* state) {
  if (*state->pending == 0) return true;
  fake_cuda_violate("a state is used while it decodes");
  return false;
}

// True if the buffer is attached to the state, and has not been attached to
// another one since: a state keeps what it knew of a buffer when it got it.
template <class Buffer>
bool IsOf(const cuda::NvjpegStateTag* state, Buffer* buffer) {
  if (!IsLive(buffer)) return false;
  if (buffer->user == state) return true;
  fake_cuda_violate("a buffer that another state has got since");
  return false;
}

}  // namespace leat::fake_cuda

// Counts the call of the enclosing function; returns the code that was set for
// it.
#define FAKE_NVJPEG_ENTER()                                  \
  do {                                                       \
    int code_ = 0;                                           \
    if (!fake_cuda_enter(__func__, &code_))                  \
      return static_cast<::leat::cuda::NvjpegResult>(code_); \
  } while (false)
