// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_phases.h"

#include <utility>

#include "core/status.h"
#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/nvjpeg_image.h"
#include "worker/gpu/cuda/nvjpeg_memory.h"

namespace leat::worker {

using cuda::NvjpegFormat;
using cuda::NvjpegResult;

absl::StatusOr<std::unique_ptr<NvjpegPhases>> NvjpegPhases::Create(
    const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu,
    cuda::NvjpegHandle handle, NvjpegMemory* memory) {
  std::unique_ptr<NvjpegPhases> phases(
      new NvjpegPhases(nvjpeg, gpu, handle, memory));
  RETURN_IF_ERROR(phases->CreateAll());
  return phases;
}

absl::Status NvjpegPhases::CreateAll() {
  const cuda::Nvjpeg& n = nvjpeg_;
  RETURN_IF_ERROR(cuda::Check(
      n.DecoderCreate(handle_, cuda::NvjpegBackend::kHybrid, &decoders_[kHost]),
      "nvjpegDecoderCreate(NVJPEG_BACKEND_HYBRID)"));
  RETURN_IF_ERROR(
      cuda::Check(n.DecoderCreate(handle_, cuda::NvjpegBackend::kGpuHybrid,
                                  &decoders_[kGpu]),
                  "nvjpegDecoderCreate(NVJPEG_BACKEND_GPU_HYBRID)"));
  for (Page& page : pages_) RETURN_IF_ERROR(CreatePage(&page));
  for (auto [params, format] : {std::pair(&as_rgb_, NvjpegFormat::kRgbi),
                                std::pair(&as_luma_, NvjpegFormat::kY)}) {
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsCreate(handle_, params),
                                "nvjpegDecodeParamsCreate"));
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsSetOutputFormat(*params, format),
                                "nvjpegDecodeParamsSetOutputFormat"));
    RETURN_IF_ERROR(SetUpright(n, *params));
  }
  return absl::OkStatus();
}

// Both backends' states of a page share its buffers. One backend works at a
// time, and is attached to the buffers again for each image.
absl::Status NvjpegPhases::CreatePage(Page* page) {
  const cuda::Nvjpeg& n = nvjpeg_;
  RETURN_IF_ERROR(page->bitstream.Open(handle_));
  RETURN_IF_ERROR(cuda::Check(
      n.BufferPinnedCreateV2(handle_, memory_.pinned(), &page->pinned),
      "nvjpegBufferPinnedCreateV2"));
  RETURN_IF_ERROR(cuda::Check(
      n.BufferDeviceCreateV2(handle_, memory_.device(), &page->device),
      "nvjpegBufferDeviceCreateV2"));
  for (int backend = 0; backend < kBackends; ++backend) {
    cuda::NvjpegState& state = page->states[backend];
    RETURN_IF_ERROR(
        cuda::Check(n.DecoderStateCreate(handle_, decoders_[backend], &state),
                    "nvjpegDecoderStateCreate"));
  }
  return absl::OkStatus();
}

NvjpegPhases::~NvjpegPhases() {
  const cuda::Nvjpeg& n = nvjpeg_;
  for (const cuda::NvjpegParams params : {as_rgb_, as_luma_})
    if (params != nullptr)
      gpu_.Released(n.DecodeParamsDestroy(params), "nvjpegDecodeParamsDestroy");
  for (Page& page : pages_) {
    for (const cuda::NvjpegState state : page.states)
      if (state != nullptr)
        gpu_.Released(n.JpegStateDestroy(state), "nvjpegJpegStateDestroy");
    if (page.pinned != nullptr)
      gpu_.Released(n.BufferPinnedDestroy(page.pinned),
                    "nvjpegBufferPinnedDestroy");
    if (page.device != nullptr)
      gpu_.Released(n.BufferDeviceDestroy(page.device),
                    "nvjpegBufferDeviceDestroy");
    page.bitstream.Close();
  }
  for (const cuda::NvjpegDecoder decoder : decoders_)
    if (decoder != nullptr)
      gpu_.Released(n.DecoderDestroy(decoder), "nvjpegDecoderDestroy");
}

NvjpegResult NvjpegPhases::Choose(const JpegToDecode& image,
                                  cuda::NvjpegStream parsed,
                                  cuda::NvjpegParams params,
                                  Backend* backend) const {
  const StoredRect& whole = image.choice.shape.region;
  for (const Backend candidate : {kGpu, kHost}) {
    if (candidate == kGpu && whole.width * whole.height <= kGpuHuffmanPixels)
      continue;
    int refused = 1;
    const NvjpegResult result = nvjpeg_.DecoderJpegSupported(
        decoders_[candidate], parsed, params, &refused);
    if (result != NvjpegResult::kSuccess) return result;
    *backend = candidate;
    if (refused == 0) return NvjpegResult::kSuccess;
  }
  return NvjpegResult::kJpegNotSupported;
}

NvjpegResult NvjpegPhases::Decode(const JpegToDecode& image,
                                  cuda::Stream stream, absl::Status* waited) {
  const cuda::Nvjpeg& n = nvjpeg_;
  const cuda::NvjpegParams params = image.luma ? as_luma_ : as_rgb_;
  Page& page = pages_[next_ ^= 1];
  NvjpegResult result = page.bitstream.Parse(image.encoded);
  if (result != NvjpegResult::kSuccess) return result;
  const cuda::NvjpegStream parsed = page.bitstream.parsed();
  Backend backend = kHost;
  result = Choose(image, parsed, params, &backend);
  if (result != NvjpegResult::kSuccess) return result;
  const cuda::NvjpegDecoder decoder = decoders_[backend];
  const cuda::NvjpegState state = page.states[backend];
  result = n.StateAttachPinnedBuffer(state, page.pinned);
  if (result != NvjpegResult::kSuccess) return result;
  result = n.DecodeJpegHost(handle_, decoder, state, params, parsed);
  if (result != NvjpegResult::kSuccess) return result;
  // The image before has ended: the next image uses its page.
  *waited = gpu_.WaitStream(stream);
  if (!waited->ok()) return result;
  memory_.Reclaim();
  result = n.StateAttachDeviceBuffer(state, page.device);
  if (result != NvjpegResult::kSuccess) return result;
  result =
      n.DecodeJpegTransferToDevice(handle_, decoder, state, parsed, stream);
  if (result != NvjpegResult::kSuccess) return result;
  cuda::NvjpegImage output = OutputOf(image);
  return n.DecodeJpegDevice(handle_, decoder, state, &output, stream);
}

}  // namespace leat::worker
