// SPDX-License-Identifier: Apache-2.0
//
// The fake nvJPEG's decoding. Images are decoded during the call, so that bad
// ones are reported then. Their pixels arrive later, when the images' bytes
// must be unchanged: those of CUDA's backends on the stream, those of the
// engines on a thread of the engines, the last image first, without regard to
// the stream's work; the stream then waits for them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/nvjpeg.h"
#include "tests/support/fake_cuda/nvjpeg_image.h"
#include "tests/support/fake_cuda/nvjpeg_objects.h"

using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

namespace leat::fake_cuda {
namespace {

uint64_t Sum(std::span<const uint8_t> bytes) {
  uint64_t hash = 14695981039346656037u;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], std::min(bytes.size() - at, sizeof(word)));
    hash = (hash ^ word) * 1099511628211u;
  }
  return hash;
}

// Pixels on their way into device memory.
struct Delivery {
  std::span<const uint8_t> jpeg;  // the caller's, until the stream is past it
  uint64_t sum = 0;
  NvjpegImage image;
  Pixels pixels;
  NvjpegFormat format = NvjpegFormat::kRgbi;
  std::span<uint8_t> working;  // the state's memory
  NvjpegSubsampling sampling = NvjpegSubsampling::kUnknown;
  int mcu = 0;  // side of MCUs that are written whole; 0: none
  std::shared_ptr<std::atomic<int>> pending;

  static void Run(void* argument) {
    const std::unique_ptr<Delivery> self(static_cast<Delivery*>(argument));
    if (!self->jpeg.empty() && Sum(self->jpeg) != self->sum)
      fake_cuda_violate("an image's bytes changed before it was decoded");
    std::fill(self->working.begin(), self->working.end(), uint8_t{0xee});
    Store(self->image, self->pixels, self->format);
    if (self->mcu > 0) StoreBeside(self->image, self->pixels, self->mcu);
    --*self->pending;
  }
};

bool IsWelcome(const Delivery& delivery) {
  if (HasRoom(delivery.image, delivery.pixels, delivery.format)) return true;
  fake_cuda_violate("a destination that is not device memory, or too small");
  return false;
}

NvjpegResult Deliver(std::unique_ptr<Delivery> delivery, Stream stream) {
  if (!IsWelcome(*delivery)) return NvjpegResult::kInvalidParameter;
  ++*delivery->pending;
  Delivery* const raw = delivery.release();
  if (fake_cuda_enqueue(stream, Delivery::Run, raw))
    return NvjpegResult::kSuccess;
  --*raw->pending;
  delete raw;
  return NvjpegResult::kExecutionFailed;
}

// Delivers as engines do: the last image first.
NvjpegResult DeliverByEngines(void* engines,
                              std::vector<std::unique_ptr<Delivery>> deliveries,
                              Stream stream) {
  for (const auto& delivery : deliveries)
    if (!IsWelcome(*delivery)) return NvjpegResult::kInvalidParameter;
  std::vector<void*> arguments;
  while (!deliveries.empty()) {
    ++*deliveries.back()->pending;
    arguments.push_back(deliveries.back().release());
    deliveries.pop_back();
  }
  if (fake_cuda_engines_run(engines, stream, Delivery::Run, arguments.data(),
                            arguments.size()))
    return NvjpegResult::kSuccess;
  for (void* argument : arguments) {
    const std::unique_ptr<Delivery> unused(static_cast<Delivery*>(argument));
    --*unused->pending;
  }
  return NvjpegResult::kExecutionFailed;
}

DecodeOptions OptionsOf(NvjpegHandle handle, const NvjpegStateTag* state,
                        NvjpegParams params) {
  DecodeOptions options;
  if (params != nullptr) options = params->options;
  // NVIDIA does not document what a decode does with an orientation that was
  // never set. With the setting "turn" it turns the image.
  options.turn =
      params != nullptr && !params->upright && fake_cuda_get("turn") != 0;
  options.format = state->format;
  options.interpolate = (handle->flags & kNvjpegInterpolatedUpsampling) != 0;
  options.spoil_edges = options.interpolate && fake_cuda_get("edges") != 0;
  return options;
}

// Inverts the colours if `kind` is the value of the setting "wrong".
void SpoilIf(uint64_t kind, Pixels* pixels) {
  if (fake_cuda_get("wrong") != kind) return;
  for (uint8_t& byte : pixels->bytes) byte = static_cast<uint8_t>(255 - byte);
}

void CountImages(const NvjpegHandleTag& handle, const NvjpegStateTag& state,
                 std::span<const std::unique_ptr<Delivery>> deliveries) {
  bool mixed = false;
  for (const auto& delivery : deliveries) {
    if (!fake_cuda_is_pinned(delivery->jpeg.data(), delivery->jpeg.size()))
      fake_cuda_add("pageable_files", 1);
    mixed = mixed || delivery->sampling != deliveries[0]->sampling;
  }
  if (!IsHardware(handle.backend)) return;
  fake_cuda_add("hardware_images", state.images);
  // The luma needs no chroma.
  if (mixed && state.format != NvjpegFormat::kY)
    fake_cuda_add("mixed_images", state.images);
}

// Decodes all or nothing: one bad image fails the batch.
NvjpegResult DecodeBatch(NvjpegHandle handle, NvjpegState state,
                         const unsigned char* const* data, const size_t* sizes,
                         NvjpegImage* images, NvjpegParams* params,
                         Stream stream) {
  if (!HasContext()) return NvjpegResult::kNotInitialized;
  if (!IsLive(handle) || !IsLive(state) || !IsFree(state))
    return NvjpegResult::kInvalidParameter;
  if (state->broken) return NvjpegResult::kInternalError;
  if (state->images == 0) {
    fake_cuda_violate("a batch that was not initialised");
    return NvjpegResult::kInvalidParameter;
  }
  std::vector<std::unique_ptr<Delivery>> deliveries;
  int regions = 0, scaled = 0;
  size_t most_pixels = 0, most_bytes = 0;
  for (int i = 0; i < state->images; ++i) {
    auto delivery = std::make_unique<Delivery>();
    delivery->jpeg = {data[i], sizes[i]};
    JpegInfo info;
    NvjpegResult result = ReadInfo(delivery->jpeg, &info);
    if (result != NvjpegResult::kSuccess) return result;
    if (IsHardware(handle->backend) && !EngineDecodes(info))
      return NvjpegResult::kJpegNotSupported;
    const DecodeOptions options =
        OptionsOf(handle, state, params == nullptr ? nullptr : params[i]);
    if (!EngineShapes(options)) {
      fake_cuda_violate("a region or a scale that the engine does not do");
      return NvjpegResult::kInvalidParameter;
    }
    delivery->sampling = info.subsampling;
    regions += options.width != 0;
    scaled += options.scale != NvjpegScale::kNone;
    result =
        DecodePixels(delivery->jpeg, options,
                     static_cast<NvjpegResult>(fake_cuda_get("batch_damaged")),
                     &delivery->pixels);
    if (result != NvjpegResult::kSuccess) return result;
    if (IsHardware(handle->backend))
      SpoilIf(options.scale != NvjpegScale::kNone
                  ? 3 + static_cast<uint64_t>(options.scale)
              : options.width != 0                ? 3
              : state->format == NvjpegFormat::kY ? 2
                                                  : 1,
              &delivery->pixels);
    delivery->sum = Sum(delivery->jpeg);
    delivery->image = images[i];
    delivery->format = state->format;
    if (IsHardware(handle->backend) && fake_cuda_get("whole_mcus") != 0)
      delivery->mcu = 16 * static_cast<int>(fake_cuda_get("whole_mcus")) >>
                      static_cast<int>(options.scale);
    delivery->pending = state->pending;
    most_pixels = std::max(most_pixels, delivery->pixels.bytes.size());
    most_bytes = std::max(most_bytes, sizes[i]);
    deliveries.push_back(std::move(delivery));
  }
  if (!state->device.Grow(most_pixels, stream) ||
      !state->pinned.Grow(most_bytes, stream))
    return NvjpegResult::kAllocatorFailure;
  for (auto& delivery : deliveries)
    delivery->working = {state->device.memory, state->device.bytes};
  CountImages(*handle, *state, deliveries);
  fake_cuda_add("region_images", regions);
  fake_cuda_add("scaled_images", scaled);
  if (handle->engines != nullptr && fake_cuda_get("ordered") == 0)
    return DeliverByEngines(handle->engines.get(), std::move(deliveries),
                            stream);
  for (auto& delivery : deliveries)
    if (const NvjpegResult result = Deliver(std::move(delivery), stream);
        result != NvjpegResult::kSuccess)
      return result;
  return NvjpegResult::kSuccess;
}

}  // namespace
}  // namespace leat::fake_cuda

extern "C" {

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

NvjpegResult nvjpegDecodeJpegHost(NvjpegHandle handle, NvjpegDecoder decoder,
                                  NvjpegState state, NvjpegParams params,
                                  NvjpegStream jpeg) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !IsLive(state) ||
      !IsLive(params) || !IsLive(jpeg) || !IsFree(state))
    return NvjpegResult::kInvalidParameter;
  if (!IsOf(state, state->pinned_buffer))
    return NvjpegResult::kInvalidParameter;
  state->format = params->options.format;
  fake_cuda_add(decoder->backend == NvjpegBackend::kGpuHybrid
                    ? "gpu_hybrid_images"
                    : "hybrid_images",
                1);
  if (!state->pinned_buffer->pinned.Grow(jpeg->data.size(), nullptr))
    return NvjpegResult::kAllocatorFailure;
  const NvjpegResult result = DecodePixels(
      jpeg->data, OptionsOf(handle, state, params),
      static_cast<NvjpegResult>(fake_cuda_get("damaged")), &state->pixels);
  SpoilIf(decoder->backend == NvjpegBackend::kGpuHybrid ? 8 : 7,
          &state->pixels);
  return result;
}

NvjpegResult nvjpegDecodeJpegTransferToDevice(NvjpegHandle handle,
                                              NvjpegDecoder decoder,
                                              NvjpegState state,
                                              NvjpegStream jpeg,
                                              Stream stream) {
  FAKE_NVJPEG_ENTER();
  if (!IsLive(handle) || !IsLive(decoder) || !IsLive(state) || !IsLive(jpeg))
    return NvjpegResult::kInvalidParameter;
  if (!IsOf(state, state->device_buffer))
    return NvjpegResult::kInvalidParameter;
  return state->device_buffer->device.Grow(state->pixels.bytes.size(), stream)
             ? NvjpegResult::kSuccess
             : NvjpegResult::kAllocatorFailure;
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
  if (!IsOf(state, state->pinned_buffer) || !IsOf(state, state->device_buffer))
    return NvjpegResult::kInvalidParameter;
  delivery->working = {state->device_buffer->device.memory,
                       state->device_buffer->device.bytes};
  return Deliver(std::move(delivery), stream);
}

}  // extern "C"
