// SPDX-License-Identifier: Apache-2.0
//
// The fake nvJPEG's handles, states, parsed images and parameters.
#include "cuda/nvjpeg.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/fake_cuda/nvjpeg_image.h"
#include "tests/support/fake_cuda/nvjpeg_objects.h"

using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

namespace {

constexpr size_t kStateBytes = size_t{64} << 10;

// A parse that fails with `result` leaves a handle that parses nothing any
// more, as nvImageCodec found for nvJPEG up to 13.2.
NvjpegResult Parsed(NvjpegResult result, NvjpegStream jpeg) {
  if (jpeg->spoilt) return NvjpegResult::kBadJpeg;
  jpeg->spoilt =
      result != NvjpegResult::kSuccess && fake_cuda_get("parse_spoils") != 0;
  return result;
}

// With the setting "parse_together", parses end when so many of them run at the
// same time. A caller that lets others wait meanwhile would wait for ever.
void ParseTogether() {
  static std::atomic<uint64_t> begun{0};
  const uint64_t together = fake_cuda_get("parse_together");
  if (together < 2) return;
  const uint64_t last = (begun++ / together + 1) * together;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (begun < last) {
    if (std::chrono::steady_clock::now() > end)
      return fake_cuda_violate("a parse waits for another one");
    std::this_thread::yield();
  }
}

// The engines are driven through a library of the driver, which nvJPEG opens by
// its name. The loader knows it only if it is loaded already.
bool HasVideoLibrary() {
  return fake_cuda_get("video") == 0 ||
         dlopen("libnvcuvid.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

// NVIDIA's documentation: the allocators of the V2 calls cannot be null.
template <class Allocator>
bool IsComplete(const Allocator* allocator) {
  if (allocator != nullptr && allocator->allocate != nullptr &&
      allocator->free != nullptr)
    return true;
  fake_cuda_violate("an allocator that is null");
  return false;
}

}  // namespace

extern "C" {

NvjpegResult nvjpegGetProperty(int property, int* value) {
  FAKE_NVJPEG_ENTER();
  constexpr int kVersion[] = {13, 0, 1};
  if (property < 0 || property > 2) return NvjpegResult::kInvalidParameter;
  *value = kVersion[property];
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegCreateExV2(NvjpegBackend backend,
                              NvjpegDeviceAllocator* device,
                              NvjpegPinnedAllocator* pinned, Flags flags,
                              NvjpegHandle* handle) {
  FAKE_NVJPEG_ENTER();
  if (!HasContext()) return NvjpegResult::kNotInitialized;
  if (!IsComplete(device) || !IsComplete(pinned))
    return NvjpegResult::kInvalidParameter;
  if (IsHardware(backend) &&
      (fake_cuda_get("engines") == 0 || !HasVideoLibrary()))
    return NvjpegResult::kArchMismatch;
  return Made("nvjpeg_handles",
              new NvjpegHandleTag{
                  .magic = kMagic,
                  .backend = backend,
                  .flags = flags,
                  .device = *device,
                  .pinned = *pinned,
                  .engines = IsHardware(backend)
                                 ? std::shared_ptr<void>(fake_cuda_engines(),
                                                         fake_cuda_engines_free)
                                 : nullptr},
              handle);
}

NvjpegResult nvjpegDestroy(NvjpegHandle handle) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_handles", handle);
}

NvjpegResult nvjpegGetHardwareDecoderInfo(NvjpegHandle handle,
                                          unsigned* engines, unsigned* cores) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  *engines = static_cast<unsigned>(fake_cuda_get("engines"));
  *cores = *engines == 0 ? 0 : static_cast<unsigned>(fake_cuda_get("cores"));
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegJpegStateCreate(NvjpegHandle handle, NvjpegState* state) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !HasContext()) return NvjpegResult::kInvalidParameter;
  auto made = std::make_unique<NvjpegStateTag>();
  made->magic = kMagic;
  made->device.allocator = handle->device;
  made->pinned.allocator = handle->pinned;
  if (!made->device.Grow(kStateBytes, nullptr))
    return NvjpegResult::kAllocatorFailure;
  return Made("nvjpeg_states", made.release(), state);
}

NvjpegResult nvjpegJpegStateDestroy(NvjpegState state) {
  FAKE_NVJPEG_ENTER();
  if (IsLive(state)) {
    IsFree(state);
    state->device.Free(nullptr);
    state->pinned.Free(nullptr);
    state->ahead.Free(nullptr);
    state->pipelined.Free(nullptr);
  }
  return Destroy("nvjpeg_states", state);
}

NvjpegResult nvjpegDecodeBatchedPreAllocate(NvjpegHandle handle,
                                            NvjpegState state, int images,
                                            int width, int height,
                                            NvjpegSubsampling, NvjpegFormat) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(state) || images <= 0 || width <= 0 ||
      height <= 0)
    return NvjpegResult::kInvalidParameter;
  const int fault = static_cast<int>(fake_cuda_get("preallocate"));
  if (fault != 0) state->broken = true;
  if (fault != 0) return static_cast<NvjpegResult>(fault);
  const auto image =
      static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
  const auto count = static_cast<size_t>(images);
  state->ahead.allocator = handle->device;
  state->pipelined.allocator = handle->device;
  const bool room = state->device.Grow(image, nullptr) &&
                    state->ahead.Grow((count - 1) * image, nullptr) &&
                    state->pipelined.Grow(count * image, nullptr);
  return room ? NvjpegResult::kSuccess : NvjpegResult::kAllocatorFailure;
}

NvjpegResult nvjpegDecodeBatchedSupported(NvjpegHandle handle,
                                          NvjpegStream jpeg, int* supported) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  *supported =
      !IsHardware(handle->backend) || EngineDecodes(jpeg->info) ? 0 : 4;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeBatchedSupportedEx(NvjpegHandle handle,
                                            NvjpegStream jpeg,
                                            NvjpegParams params,
                                            int* supported) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(jpeg) || !IsLive(params))
    return NvjpegResult::kInvalidParameter;
  *supported = IsHardware(handle->backend) && EngineDecodes(jpeg->info) &&
                       EngineShapes(params->options)
                   ? 0
                   : 4;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegJpegStreamCreate(NvjpegHandle handle, NvjpegStream* jpeg) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_streams", new NvjpegStreamTag{.magic = kMagic}, jpeg);
}

NvjpegResult nvjpegJpegStreamDestroy(NvjpegStream jpeg) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_streams", jpeg);
}

NvjpegResult nvjpegJpegStreamParseHeader(NvjpegHandle handle,
                                         const unsigned char* data,
                                         size_t bytes, NvjpegStream jpeg) {
  int ordered = 0;
  const bool enters = fake_cuda_enter(__func__, &ordered) != 0;
  if (!IsLive(handle) || !IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  if (!enters) return Parsed(static_cast<NvjpegResult>(ordered), jpeg);
  jpeg->info = {};
  return Parsed(ReadInfo({data, bytes}, &jpeg->info), jpeg);
}

NvjpegResult nvjpegJpegStreamParse(NvjpegHandle handle,
                                   const unsigned char* data, size_t bytes, int,
                                   int, NvjpegStream jpeg) {
  int ordered = 0;
  const bool enters = fake_cuda_enter(__func__, &ordered) != 0;
  if (!IsLive(handle) || !IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  if (!enters) return Parsed(static_cast<NvjpegResult>(ordered), jpeg);
  ParseTogether();
  jpeg->info = {};
  jpeg->data.assign(data, data + bytes);
  NvjpegResult result = ReadInfo({data, bytes}, &jpeg->info);
  if (result == NvjpegResult::kSuccess && HasFrameInScan({data, bytes}))
    result = NvjpegResult::kBadJpeg;
  return Parsed(result, jpeg);
}

NvjpegResult nvjpegJpegStreamGetChromaSubsampling(
    NvjpegStream jpeg, NvjpegSubsampling* subsampling) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  *subsampling = jpeg->info.subsampling;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeParamsCreate(NvjpegHandle handle,
                                      NvjpegParams* params) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_params", new NvjpegParamsTag{.magic = kMagic}, params);
}

NvjpegResult nvjpegDecodeParamsDestroy(NvjpegParams params) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_params", params);
}

NvjpegResult nvjpegDecodeParamsSetOutputFormat(NvjpegParams params,
                                               NvjpegFormat format) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(params)) return NvjpegResult::kInvalidParameter;
  params->options.format = format;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeParamsSetROI(NvjpegParams params, int x, int y,
                                      int width, int height) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(params)) return NvjpegResult::kInvalidParameter;
  params->options.x = x;
  params->options.y = y;
  params->options.width = width < 0 ? 0 : width;
  params->options.height = height < 0 ? 0 : height;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeParamsSetScaleFactor(NvjpegParams params,
                                              NvjpegScale scale) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(params)) return NvjpegResult::kInvalidParameter;
  params->options.scale = scale;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeParamsSetExifOrientation(
    NvjpegParams params, NvjpegOrientation orientation) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(params)) return NvjpegResult::kInvalidParameter;
  params->upright = orientation == NvjpegOrientation::kNormal;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecoderCreate(NvjpegHandle handle, NvjpegBackend backend,
                                 NvjpegDecoder* decoder) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !HasContext()) return NvjpegResult::kInvalidParameter;
  if (IsHardware(backend) && fake_cuda_get("engines") == 0)
    return NvjpegResult::kArchMismatch;
  return Made("nvjpeg_decoders",
              new NvjpegDecoderTag{.magic = kMagic, .backend = backend},
              decoder);
}

NvjpegResult nvjpegDecoderDestroy(NvjpegDecoder decoder) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_decoders", decoder);
}

NvjpegResult nvjpegDecoderJpegSupported(NvjpegDecoder decoder,
                                        NvjpegStream jpeg, NvjpegParams params,
                                        int* supported) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(decoder) || !IsLive(jpeg) || !IsLive(params))
    return NvjpegResult::kInvalidParameter;
  const bool able = IsHardware(decoder->backend) ? EngineDecodes(jpeg->info)
                                                 : !jpeg->info.cmyk;
  *supported = able ? 0 : 4;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecoderStateCreate(NvjpegHandle handle,
                                      NvjpegDecoder decoder,
                                      NvjpegState* state) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !HasContext())
    return NvjpegResult::kInvalidParameter;
  auto made = std::make_unique<NvjpegStateTag>();
  made->magic = kMagic;
  return Made("nvjpeg_states", made.release(), state);
}

NvjpegResult nvjpegBufferPinnedCreateV2(NvjpegHandle handle,
                                        NvjpegPinnedAllocator* allocator,
                                        NvjpegPinnedBuffer* buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsComplete(allocator))
    return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_buffers",
              new NvjpegPinnedBufferTag{.magic = kMagic,
                                        .pinned = {.allocator = *allocator}},
              buffer);
}

NvjpegResult nvjpegBufferPinnedDestroy(NvjpegPinnedBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (IsLive(buffer)) buffer->pinned.Free(nullptr);
  return Destroy("nvjpeg_buffers", buffer);
}

NvjpegResult nvjpegBufferDeviceCreateV2(NvjpegHandle handle,
                                        NvjpegDeviceAllocator* allocator,
                                        NvjpegDeviceBuffer* buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsComplete(allocator))
    return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_buffers",
              new NvjpegDeviceBufferTag{.magic = kMagic,
                                        .device = {.allocator = *allocator}},
              buffer);
}

NvjpegResult nvjpegBufferDeviceDestroy(NvjpegDeviceBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (IsLive(buffer)) buffer->device.Free(nullptr);
  return Destroy("nvjpeg_buffers", buffer);
}

NvjpegResult nvjpegStateAttachPinnedBuffer(NvjpegState state,
                                           NvjpegPinnedBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(state) || !IsLive(buffer)) return NvjpegResult::kInvalidParameter;
  state->pinned_buffer = buffer;
  buffer->user = state;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegStateAttachDeviceBuffer(NvjpegState state,
                                           NvjpegDeviceBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(state) || !IsLive(buffer)) return NvjpegResult::kInvalidParameter;
  state->device_buffer = buffer;
  buffer->user = state;
  return NvjpegResult::kSuccess;
}

}  // extern "C"
