// SPDX-License-Identifier: Apache-2.0
//
// The fake nvJPEG. Images are decoded when a call is made, so that bad ones are
// told of then; their pixels arrive on the stream, where the images' bytes must
// still be what they were.
#include "cuda/nvjpeg.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/nvjpeg_image.h"

using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

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
namespace {

constexpr uint64_t kMagic = 0x6c6561746a706567;

template <class T>
bool IsLive(T* object) {
  if (object != nullptr && object->magic == kMagic) return true;
  fake_cuda_violate("a handle that does not exist");
  return false;
}

template <class T>
NvjpegResult Destroy(const char* what, T* object) {
  if (!IsLive(object)) return NvjpegResult::kInvalidParameter;
  object->magic = 0;
  delete object;
  fake_cuda_add(what, -1);
  return NvjpegResult::kSuccess;
}

template <class T>
NvjpegResult Made(const char* what, T* object, T** out) {
  fake_cuda_add(what, 1);
  *out = object;
  return NvjpegResult::kSuccess;
}

bool HasContext() {
  if (fake_cuda_has_context()) return true;
  fake_cuda_violate("no context is current");
  return false;
}

uint64_t Sum(std::span<const uint8_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(),
                         uint64_t{14695981039346656037u},
                         [](uint64_t hash, uint8_t byte) {
                           return (hash ^ byte) * 1099511628211u;
                         });
}

// Pixels on their way into device memory.
struct Delivery {
  std::span<const uint8_t> jpeg;  // the caller's, until the stream is past it
  uint64_t sum = 0;
  NvjpegImage image;
  Pixels pixels;
  NvjpegFormat format = NvjpegFormat::kRgbi;
  std::shared_ptr<std::atomic<int>> pending;

  static void Run(void* argument) {
    const std::unique_ptr<Delivery> self(static_cast<Delivery*>(argument));
    if (!self->jpeg.empty() && Sum(self->jpeg) != self->sum)
      fake_cuda_violate("an image's bytes changed before it was decoded");
    Store(self->image, self->pixels, self->format);
    --*self->pending;
  }
};

NvjpegResult Deliver(std::unique_ptr<Delivery> delivery, Stream stream) {
  if (!HasRoom(delivery->image, delivery->pixels, delivery->format)) {
    fake_cuda_violate("a destination that is not device memory, or too small");
    return NvjpegResult::kInvalidParameter;
  }
  ++*delivery->pending;
  Delivery* const raw = delivery.release();
  if (fake_cuda_enqueue(stream, Delivery::Run, raw))
    return NvjpegResult::kSuccess;
  --*raw->pending;
  delete raw;
  return NvjpegResult::kExecutionFailed;
}

bool IsHardware(NvjpegBackend backend) {
  return backend == NvjpegBackend::kHardware ||
         backend == NvjpegBackend::kHardwareDevice;
}

// Whether the state's last work is done, as it must be.
bool IsFree(NvjpegStateTag* state) {
  if (*state->pending == 0) return true;
  fake_cuda_violate("a state is used while it decodes");
  return false;
}

DecodeOptions OptionsOf(NvjpegHandle handle, const NvjpegStateTag* state,
                        NvjpegParams params) {
  DecodeOptions options;
  if (params != nullptr) options = params->options;
  options.format = state->format;
  options.interpolate = (handle->flags & kNvjpegInterpolatedUpsampling) != 0;
  return options;
}

// All or nothing: one bad image fails the batch.
NvjpegResult DecodeBatch(NvjpegHandle handle, NvjpegState state,
                         const unsigned char* const* data, const size_t* sizes,
                         NvjpegImage* images, NvjpegParams* params,
                         Stream stream) {
  if (!HasContext()) return NvjpegResult::kNotInitialized;
  if (!IsLive(handle) || !IsLive(state) || !IsFree(state))
    return NvjpegResult::kInvalidParameter;
  if (state->images == 0) {
    fake_cuda_violate("a batch that was not initialised");
    return NvjpegResult::kInvalidParameter;
  }
  std::vector<std::unique_ptr<Delivery>> deliveries;
  for (int i = 0; i < state->images; ++i) {
    auto delivery = std::make_unique<Delivery>();
    delivery->jpeg = {data[i], sizes[i]};
    JpegInfo info;
    NvjpegResult result = ReadInfo(delivery->jpeg, &info);
    if (result != NvjpegResult::kSuccess) return result;
    if (IsHardware(handle->backend) && !EngineDecodes(info))
      return NvjpegResult::kJpegNotSupported;
    result = DecodePixels(
        delivery->jpeg,
        OptionsOf(handle, state, params == nullptr ? nullptr : params[i]),
        &delivery->pixels);
    if (result != NvjpegResult::kSuccess) return result;
    delivery->sum = Sum(delivery->jpeg);
    delivery->image = images[i];
    delivery->format = state->format;
    delivery->pending = state->pending;
    deliveries.push_back(std::move(delivery));
  }
  if (IsHardware(handle->backend))
    fake_cuda_add("hardware_images", state->images);
  for (auto& delivery : deliveries)
    if (const NvjpegResult result = Deliver(std::move(delivery), stream);
        result != NvjpegResult::kSuccess)
      return result;
  return NvjpegResult::kSuccess;
}

}  // namespace
}  // namespace leat::fake_cuda

#define FAKE_NVJPEG_ENTER()                    \
  do {                                         \
    int code_ = 0;                             \
    if (!fake_cuda_enter(__func__, &code_))    \
      return static_cast<NvjpegResult>(code_); \
  } while (false)

extern "C" {

NvjpegResult nvjpegGetProperty(int property, int* value) {
  FAKE_NVJPEG_ENTER();
  constexpr int kVersion[] = {13, 0, 1};
  if (property < 0 || property > 2) return NvjpegResult::kInvalidParameter;
  *value = kVersion[property];
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegCreateExV2(NvjpegBackend backend, NvjpegDeviceAllocator*,
                              NvjpegPinnedAllocator*, Flags flags,
                              NvjpegHandle* handle) {
  FAKE_NVJPEG_ENTER();
  if (!HasContext()) return NvjpegResult::kNotInitialized;
  if (IsHardware(backend) && fake_cuda_get("engines") == 0)
    return NvjpegResult::kArchMismatch;
  return Made(
      "nvjpeg_handles",
      new NvjpegHandleTag{.magic = kMagic, .backend = backend, .flags = flags},
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

NvjpegResult nvjpegGetImageInfo(NvjpegHandle handle, const unsigned char* data,
                                size_t bytes, int* components,
                                NvjpegSubsampling* subsampling, int* widths,
                                int* heights) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  JpegInfo info;
  const NvjpegResult result = ReadInfo({data, bytes}, &info);
  if (result != NvjpegResult::kSuccess) return result;
  *components = info.components;
  *subsampling = info.subsampling;
  widths[0] = info.width;
  heights[0] = info.height;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegJpegStateCreate(NvjpegHandle handle, NvjpegState* state) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !HasContext()) return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_states", new NvjpegStateTag{.magic = kMagic}, state);
}

NvjpegResult nvjpegJpegStateDestroy(NvjpegState state) {
  FAKE_NVJPEG_ENTER();
  if (IsLive(state)) IsFree(state);
  return Destroy("nvjpeg_states", state);
}

NvjpegResult nvjpegDecode(NvjpegHandle handle, NvjpegState state,
                          const unsigned char* data, size_t bytes,
                          NvjpegFormat format, NvjpegImage* image,
                          Stream stream) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(state)) return NvjpegResult::kInvalidParameter;
  state->images = 1;
  state->format = format;
  return DecodeBatch(handle, state, &data, &bytes, image, nullptr, stream);
}

NvjpegResult nvjpegDecodeBatchedInitialize(NvjpegHandle handle,
                                           NvjpegState state, int images,
                                           int threads, NvjpegFormat format) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(state) || images <= 0 || threads <= 0 ||
      !IsFree(state))
    return NvjpegResult::kInvalidParameter;
  state->images = images;
  state->format = format;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeBatchedPreAllocate(NvjpegHandle handle,
                                            NvjpegState state, int images,
                                            int width, int height,
                                            NvjpegSubsampling, NvjpegFormat) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(state) || images <= 0 || width <= 0 ||
      height <= 0)
    return NvjpegResult::kInvalidParameter;
  return NvjpegResult::kSuccess;
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
  const bool region = params->options.width != 0;
  const bool scaled = params->options.scale != NvjpegScale::kNone;
  const bool engine = IsHardware(handle->backend);
  *supported = (!engine || EngineDecodes(jpeg->info)) &&
                       (!region || (engine && fake_cuda_get("roi") != 0)) &&
                       (!scaled || engine)
                   ? 0
                   : 4;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegDecodeBatched(NvjpegHandle handle, NvjpegState state,
                                 const unsigned char* const* data,
                                 const size_t* sizes, NvjpegImage* images,
                                 Stream stream) {
  FAKE_NVJPEG_ENTER();
  return DecodeBatch(handle, state, data, sizes, images, nullptr, stream);
}

NvjpegResult nvjpegDecodeBatchedEx(NvjpegHandle handle, NvjpegState state,
                                   const unsigned char* const* data,
                                   const size_t* sizes, NvjpegImage* images,
                                   NvjpegParams* params, Stream stream) {
  FAKE_NVJPEG_ENTER();
  return DecodeBatch(handle, state, data, sizes, images, params, stream);
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
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  jpeg->info = {};
  return ReadInfo({data, bytes}, &jpeg->info);
}

NvjpegResult nvjpegJpegStreamParse(NvjpegHandle handle,
                                   const unsigned char* data, size_t bytes, int,
                                   int, NvjpegStream jpeg) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(jpeg)) return NvjpegResult::kInvalidParameter;
  jpeg->info = {};
  jpeg->data.assign(data, data + bytes);
  return ReadInfo({data, bytes}, &jpeg->info);
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

NvjpegResult nvjpegDecodeParamsSetAllowCMYK(NvjpegParams params, int) {
  FAKE_NVJPEG_ENTER();
  return IsLive(params) ? NvjpegResult::kSuccess
                        : NvjpegResult::kInvalidParameter;
}

NvjpegResult nvjpegDecodeParamsSetScaleFactor(NvjpegParams params,
                                              NvjpegScale scale) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(params)) return NvjpegResult::kInvalidParameter;
  params->options.scale = scale;
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
  return Made("nvjpeg_states", new NvjpegStateTag{.magic = kMagic}, state);
}

NvjpegResult nvjpegDecodeJpegHost(NvjpegHandle handle, NvjpegDecoder decoder,
                                  NvjpegState state, NvjpegParams params,
                                  NvjpegStream jpeg) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !IsLive(state) ||
      !IsLive(params) || !IsLive(jpeg) || !IsFree(state))
    return NvjpegResult::kInvalidParameter;
  if (!state->pinned_buffer) {
    fake_cuda_violate("a state without a pinned buffer");
    return NvjpegResult::kInvalidParameter;
  }
  state->format = params->options.format;
  return DecodePixels(jpeg->data, OptionsOf(handle, state, params),
                      &state->pixels);
}

NvjpegResult nvjpegDecodeJpegTransferToDevice(NvjpegHandle handle,
                                              NvjpegDecoder decoder,
                                              NvjpegState state,
                                              NvjpegStream jpeg, Stream) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !IsLive(state) || !IsLive(jpeg))
    return NvjpegResult::kInvalidParameter;
  if (state->device_buffer) return NvjpegResult::kSuccess;
  fake_cuda_violate("a state without a device buffer");
  return NvjpegResult::kInvalidParameter;
}

NvjpegResult nvjpegDecodeJpegDevice(NvjpegHandle handle, NvjpegDecoder decoder,
                                    NvjpegState state, NvjpegImage* image,
                                    Stream stream) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !IsLive(state))
    return NvjpegResult::kInvalidParameter;
  auto delivery = std::make_unique<Delivery>();
  delivery->image = *image;
  delivery->pixels = std::move(state->pixels);
  delivery->format = state->format;
  delivery->pending = state->pending;
  return Deliver(std::move(delivery), stream);
}

NvjpegResult nvjpegBufferPinnedCreateV2(NvjpegHandle handle,
                                        NvjpegPinnedAllocator*,
                                        NvjpegPinnedBuffer* buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_buffers", new NvjpegPinnedBufferTag{kMagic}, buffer);
}

NvjpegResult nvjpegBufferPinnedDestroy(NvjpegPinnedBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_buffers", buffer);
}

NvjpegResult nvjpegBufferDeviceCreateV2(NvjpegHandle handle,
                                        NvjpegDeviceAllocator*,
                                        NvjpegDeviceBuffer* buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle)) return NvjpegResult::kInvalidParameter;
  return Made("nvjpeg_buffers", new NvjpegDeviceBufferTag{kMagic}, buffer);
}

NvjpegResult nvjpegBufferDeviceDestroy(NvjpegDeviceBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  return Destroy("nvjpeg_buffers", buffer);
}

NvjpegResult nvjpegStateAttachPinnedBuffer(NvjpegState state,
                                           NvjpegPinnedBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(state) || !IsLive(buffer)) return NvjpegResult::kInvalidParameter;
  state->pinned_buffer = true;
  return NvjpegResult::kSuccess;
}

NvjpegResult nvjpegStateAttachDeviceBuffer(NvjpegState state,
                                           NvjpegDeviceBuffer buffer) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(state) || !IsLive(buffer)) return NvjpegResult::kInvalidParameter;
  state->device_buffer = true;
  return NvjpegResult::kSuccess;
}

}  // extern "C"
