// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_slot.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/jpeg_kind.h"
#include "worker/gpu/cuda/nvjpeg_fault.h"
#include "worker/gpu/cuda/nvjpeg_image.h"

namespace leat::worker {
namespace {

using cuda::NvjpegFormat;
using cuda::NvjpegResult;

// The size of a usual photo: the engines' memory is allocated for it ahead.
constexpr int kUsualWidth = 1280, kUsualHeight = 1024;

// Returns for how many images memory is allocated ahead: nvJPEG may take twice
// as much for its pipeline, and a third is for luma, for CUDA and for larger
// images.
int PreparedImages(uint64_t most_bytes) {
  constexpr uint64_t kImageBytes = uint64_t{kUsualWidth} * kUsualHeight * 3;
  return static_cast<int>(
      std::min<uint64_t>(kMaxGpuGroupRows, most_bytes / 3 / kImageBytes));
}

constexpr char kBatchedCall[] = "nvjpegDecodeBatchedEx";

}  // namespace

NvjpegSlot::NvjpegSlot(const NvjpegDevice& device, cuda::Stream stream,
                       uint64_t most_bytes)
    : nvjpeg_(*device.nvjpeg),
      gpu_(*device.gpu),
      stream_(stream),
      most_bytes_(most_bytes),
      memory_(device.gpu, most_bytes, most_bytes),
      asked_(device.nvjpeg, device.gpu) {}

absl::StatusOr<std::unique_ptr<NvjpegSlot>> NvjpegSlot::Create(
    const NvjpegDevice& device, cuda::Stream stream, uint64_t most_bytes) {
  std::unique_ptr<NvjpegSlot> slot(new NvjpegSlot(device, stream, most_bytes));
  if (device.engines) {
    RETURN_IF_ERROR(
        slot->CreateHandle(cuda::NvjpegBackend::kHardware, &slot->engines_));
    RETURN_IF_ERROR(slot->CreateEngines());
  }
  RETURN_IF_ERROR(
      slot->CreateHandle(cuda::NvjpegBackend::kDefault, &slot->cuda_));
  ASSIGN_OR_RETURN(slot->phases_,
                   NvjpegPhases::Create(&slot->nvjpeg_, &slot->gpu_,
                                        slot->cuda_, &slot->memory_));
  return slot;
}

// A slot has its own handles, since a handle's allocators do not learn for
// which slot they allocate.
absl::Status NvjpegSlot::CreateHandle(cuda::NvjpegBackend backend,
                                      cuda::NvjpegHandle* handle) {
  return cuda::Check(
      nvjpeg_.CreateExV2(backend, memory_.device(), memory_.pinned(),
                         NvjpegFlags(nvjpeg_), handle),
      "nvjpegCreateExV2");
}

absl::Status NvjpegSlot::CreateEngines() {
  const cuda::Nvjpeg& n = nvjpeg_;
  {
    MutexLock lock(&asking_);
    RETURN_IF_ERROR(asked_.Open(engines_));
    RETURN_IF_ERROR(CreateParams(&asked_for_));
  }
  while (shapes_.size() < kMaxGpuGroupRows) {
    shapes_.push_back(nullptr);
    RETURN_IF_ERROR(CreateParams(&shapes_.back()));
  }
  RETURN_IF_ERROR(CreateBatch(&luma_));
  RETURN_IF_ERROR(CreateBatch(&rgb_));
  const int images = PreparedImages(most_bytes_);
  if (images == 0) return absl::OkStatus();
  const NvjpegResult prepared = PrepareBatch(images, &rgb_);
  if (prepared == NvjpegResult::kSuccess) return absl::OkStatus();
  // The state may be incomplete. A new one decodes, too, and allocates its
  // memory when the first images arrive.
  LOG_INFO("gpu.nvjpeg_not_prepared gpu={} error=\"{}\"", gpu_.info().index,
           Message(cuda::Check(prepared, "nvjpegDecodeBatchedPreAllocate")));
  RETURN_IF_ERROR(
      cuda::Check(n.JpegStateDestroy(std::exchange(rgb_.state, nullptr)),
                  "nvjpegJpegStateDestroy"));
  memory_.Reclaim();
  return CreateBatch(&rgb_);
}

absl::Status NvjpegSlot::CreateParams(cuda::NvjpegParams* params) {
  RETURN_IF_ERROR(cuda::Check(nvjpeg_.DecodeParamsCreate(engines_, params),
                              "nvjpegDecodeParamsCreate"));
  return SetUpright(nvjpeg_, *params);
}

absl::Status NvjpegSlot::CreateBatch(Batch* batch) {
  return cuda::Check(nvjpeg_.JpegStateCreate(engines_, &batch->state),
                     "nvjpegJpegStateCreate");
}

NvjpegResult NvjpegSlot::PrepareBatch(int images, Batch* batch) {
  const NvjpegResult result = nvjpeg_.DecodeBatchedInitialize(
      engines_, batch->state, images, 1, batch->format);
  if (result != NvjpegResult::kSuccess) return result;
  return nvjpeg_.DecodeBatchedPreAllocate(
      engines_, batch->state, images, kUsualWidth, kUsualHeight,
      cuda::NvjpegSubsampling::k444, batch->format);
}

NvjpegSlot::~NvjpegSlot() {
  const cuda::Nvjpeg& n = nvjpeg_;
  MutexLock lock(&asking_);
  phases_.reset();
  if (asked_for_ != nullptr)
    gpu_.Released(n.DecodeParamsDestroy(asked_for_),
                  "nvjpegDecodeParamsDestroy");
  for (const cuda::NvjpegParams params : shapes_)
    if (params != nullptr)
      gpu_.Released(n.DecodeParamsDestroy(params), "nvjpegDecodeParamsDestroy");
  for (const Batch& batch : {rgb_, luma_})
    if (batch.state != nullptr)
      gpu_.Released(n.JpegStateDestroy(batch.state), "nvjpegJpegStateDestroy");
  asked_.Close();
  for (const cuda::NvjpegHandle handle : {engines_, cuda_})
    if (handle != nullptr) gpu_.Released(n.Destroy(handle), "nvjpegDestroy");
}

bool NvjpegSlot::Takes(const JpegDecoder::Header& header) const {
  return IsForNvjpeg(header);
}

absl::StatusOr<DecodeChoice> NvjpegSlot::Choose(
    std::span<const std::byte> encoded, bool luma,
    std::span<const DecodeShape> shapes) {
  const DecodeChoice by_cuda{.shape = shapes.back()};
  if (engines_ == nullptr) return by_cuda;
  if (const absl::Status current = gpu_.MakeCurrent(); !current.ok())
    return Unavailable("GPU {}: {}", gpu_.info().index, Message(current));
  NvjpegResult result = NvjpegResult::kSuccess;
  for (int attempt = 0; attempt < kDecodeTries; ++attempt) {
    DecodeChoice choice = by_cuda;
    {
      MutexLock lock(&asking_);
      result = Ask(encoded, luma, shapes, &choice);
    }
    if (result == NvjpegResult::kSuccess) return choice;
    if (DecodeFaultOf(result) == DecodeFault::kImage) return by_cuda;
  }
  return Unavailable("GPU {}: {}", gpu_.info().index,
                     Message(cuda::Check(result, "asking nvJPEG")));
}

// Reads all markers, not the header alone: a file whose scan is cut short or
// malformed makes a whole batch of the engines fail.
NvjpegResult NvjpegSlot::Ask(std::span<const std::byte> encoded, bool luma,
                             std::span<const DecodeShape> shapes,
                             DecodeChoice* choice) {
  NvjpegResult result = asked_.Parse(encoded);
  if (result != NvjpegResult::kSuccess) return result;
  for (const DecodeShape& shape : shapes) {
    int refused = 1;
    result = Set(asked_for_, luma, shape);
    if (result == NvjpegResult::kSuccess)
      result = nvjpeg_.DecodeBatchedSupportedEx(engines_, asked_.parsed(),
                                                asked_for_, &refused);
    if (result == NvjpegResult::kSuccess && refused == 0) {
      *choice = {.engines = true, .shape = shape};
      return result;
    }
    // The engines refuse this image or this shape: try the next one.
    if (result != NvjpegResult::kSuccess &&
        DecodeFaultOf(result) != DecodeFault::kImage)
      return result;
  }
  return NvjpegResult::kSuccess;
}

NvjpegResult NvjpegSlot::Set(cuda::NvjpegParams params, bool luma,
                             const DecodeShape& shape) const {
  const StoredRect region = shape.cut ? shape.region : StoredRect{0, 0, -1, -1};
  NvjpegResult result = nvjpeg_.DecodeParamsSetOutputFormat(
      params, luma ? NvjpegFormat::kY : NvjpegFormat::kRgbi);
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg_.DecodeParamsSetROI(
        params, static_cast<int>(region.x), static_cast<int>(region.y),
        static_cast<int>(region.width), static_cast<int>(region.height));
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg_.DecodeParamsSetScaleFactor(
        params, static_cast<cuda::NvjpegScale>(shape.halvings));
  return result;
}

absl::Status NvjpegSlot::Decode(std::span<JpegToDecode> images) {
  memory_.Reclaim();
  std::vector<JpegToDecode*> rgb, luma;
  for (JpegToDecode& image : images) {
    if (image.choice.engines)
      (image.luma ? luma : rgb).push_back(&image);
    else
      RETURN_IF_ERROR(DecodeByCuda(&image, stream_));
  }
  RETURN_IF_ERROR(DecodeBatch(rgb, rgb_, stream_));
  return DecodeBatch(luma, luma_, stream_);
}

// One bad image among n costs 2 · log₂ n batches instead of one.
absl::Status NvjpegSlot::DecodeBatch(std::span<JpegToDecode*> images,
                                     const Batch& batch, cuda::Stream stream) {
  if (images.empty()) return absl::OkStatus();
  if (images.size() == 1) return DecodeAlone(images[0], batch, stream);
  const NvjpegResult result = CallBatched(images, batch, stream);
  if (result == NvjpegResult::kSuccess) {
    for (JpegToDecode* image : images)
      image->outcome = JpegToDecode::Outcome::kDecoded;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AfterFailure(result, kBatchedCall, stream));
  const size_t half = images.size() / 2;
  for (const auto part : {images.first(half), images.subspan(half)}) {
    RETURN_IF_ERROR(DecodeBatch(part, batch, stream));
    // Waits before the state is prepared for the next part.
    RETURN_IF_ERROR(gpu_.WaitStream(stream));
  }
  return absl::OkStatus();
}

absl::Status NvjpegSlot::DecodeAlone(JpegToDecode* image, const Batch& batch,
                                     cuda::Stream stream) {
  bool settled = false;
  for (int attempt = 0; attempt < kDecodeTries && !settled; ++attempt) {
    const NvjpegResult result = CallBatched({&image, 1}, batch, stream);
    ASSIGN_OR_RETURN(settled, Settle(result, kBatchedCall, image, stream));
  }
  return absl::OkStatus();
}

NvjpegResult NvjpegSlot::CallBatched(std::span<JpegToDecode*> images,
                                     const Batch& batch, cuda::Stream stream) {
  data_.clear();
  sizes_.clear();
  outputs_.clear();
  for (size_t i = 0; i < images.size(); ++i) {
    const JpegToDecode& image = *images[i];
    const NvjpegResult set = Set(shapes_[i], image.luma, image.choice.shape);
    if (set != NvjpegResult::kSuccess) return set;
    data_.push_back(DataOf(image.encoded));
    sizes_.push_back(image.encoded.size());
    outputs_.push_back(OutputOf(image));
  }
  const NvjpegResult ready = nvjpeg_.DecodeBatchedInitialize(
      engines_, batch.state, static_cast<int>(images.size()), 1, batch.format);
  if (ready != NvjpegResult::kSuccess) return ready;
  return nvjpeg_.DecodeBatchedEx(engines_, batch.state, data_.data(),
                                 sizes_.data(), outputs_.data(), shapes_.data(),
                                 stream);
}

absl::Status NvjpegSlot::DecodeByCuda(JpegToDecode* image,
                                      cuda::Stream stream) {
  bool settled = false;
  for (int attempt = 0; attempt < kDecodeTries && !settled; ++attempt) {
    absl::Status waited;
    const NvjpegResult result = phases_->Decode(*image, stream, &waited);
    RETURN_IF_ERROR(waited);
    ASSIGN_OR_RETURN(settled,
                     Settle(result, "nvjpegDecodeJpeg", image, stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NvjpegSlot::Settle(NvjpegResult result, const char* call,
                                        JpegToDecode* image,
                                        cuda::Stream stream) const {
  image->outcome = JpegToDecode::Outcome::kDecoded;
  if (result == NvjpegResult::kSuccess) return true;
  RETURN_IF_ERROR(AfterFailure(result, call, stream));
  const bool refused = DecodeFaultOf(result) == DecodeFault::kImage;
  image->outcome = refused ? JpegToDecode::Outcome::kRefused
                           : JpegToDecode::Outcome::kFailed;
  return refused;
}

absl::Status NvjpegSlot::AfterFailure(NvjpegResult result, const char* call,
                                      cuda::Stream stream) const {
  const DecodeFault fault = DecodeFaultOf(result);
  absl::Status status = cuda::Check(result, call);
  if (fault == DecodeFault::kMemory) return status;
  if (fault == DecodeFault::kWorker)
    LOG_WARN("gpu.nvjpeg gpu={} error=\"{}\"", gpu_.info().index,
             Message(status));
  return gpu_.WaitStream(stream);
}

}  // namespace leat::worker
