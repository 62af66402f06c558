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
      questions_(device.nvjpeg, device.gpu) {
  batches_[kNvjpegLumaBatch].format = NvjpegFormat::kY;
}

absl::StatusOr<std::unique_ptr<NvjpegSlot>> NvjpegSlot::Create(
    const NvjpegDevice& device, cuda::Stream stream, uint64_t most_bytes,
    const NvjpegSlot* beside) {
  std::unique_ptr<NvjpegSlot> slot(new NvjpegSlot(device, stream, most_bytes));
  if (beside != nullptr) {
    slot->handles_ = beside->handles_;
    slot->memory_ = slot->handles_->AddMemory(most_bytes);
  } else {
    ASSIGN_OR_RETURN(slot->handles_,
                     NvjpegHandles::Create(device, most_bytes, &slot->memory_));
  }
  const NvjpegHandles::Use use(slot->memory_);
  slot->engines_ = slot->handles_->engines();
  if (slot->engines_ != nullptr) RETURN_IF_ERROR(slot->CreateEngines());
  ASSIGN_OR_RETURN(slot->phases_,
                   NvjpegPhases::Create(&slot->nvjpeg_, &slot->gpu_,
                                        slot->handles_->cuda(), slot->memory_));
  return slot;
}

absl::Status NvjpegSlot::CreateEngines() {
  RETURN_IF_ERROR(questions_.Open(engines_));
  while (shapes_.size() < kMaxGpuGroupRows) {
    shapes_.push_back(nullptr);
    RETURN_IF_ERROR(CreateParams(&shapes_.back()));
  }
  for (Batch& batch : batches_) RETURN_IF_ERROR(CreateBatch(&batch));
  const int images = PreparedImages(most_bytes_);
  if (images == 0) return absl::OkStatus();
  // Most photos have this sampling.
  return PrepareBatch(
      images, &batches_[NvjpegBatchOf(false, cuda::NvjpegSubsampling::k420)]);
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

absl::Status NvjpegSlot::RenewBatch(Batch* batch) {
  batch->used = false;
  RETURN_IF_ERROR(cuda::Check(
      nvjpeg_.JpegStateDestroy(std::exchange(batch->state, nullptr)),
      "nvjpegJpegStateDestroy"));
  memory_->Reclaim();
  return CreateBatch(batch);
}

absl::Status NvjpegSlot::PrepareBatch(int images, Batch* batch) {
  NvjpegResult result = nvjpeg_.DecodeBatchedInitialize(
      engines_, batch->state, images, 1, batch->format);
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg_.DecodeBatchedPreAllocate(
        engines_, batch->state, images, kUsualWidth, kUsualHeight,
        cuda::NvjpegSubsampling::k420, batch->format);
  batch->used = true;
  if (result == NvjpegResult::kSuccess) return absl::OkStatus();
  // The state may be incomplete. A new one decodes, too, and allocates its
  // memory when the first images arrive.
  LOG_INFO("gpu.nvjpeg_not_prepared gpu={} error=\"{}\"", gpu_.info().index,
           Message(cuda::Check(result, "nvjpegDecodeBatchedPreAllocate")));
  return RenewBatch(batch);
}

NvjpegSlot::~NvjpegSlot() {
  const cuda::Nvjpeg& n = nvjpeg_;
  const NvjpegHandles::Use use(memory_);
  phases_.reset();
  questions_.Close();
  for (const cuda::NvjpegParams params : shapes_)
    if (params != nullptr)
      gpu_.Released(n.DecodeParamsDestroy(params), "nvjpegDecodeParamsDestroy");
  for (const Batch& batch : batches_)
    if (batch.state != nullptr)
      gpu_.Released(n.JpegStateDestroy(batch.state), "nvjpegJpegStateDestroy");
}

bool NvjpegSlot::Takes(const JpegDecoder::Header& header) const {
  return IsForNvjpeg(header);
}

absl::StatusOr<DecodeChoice> NvjpegSlot::Choose(
    std::span<const std::byte> encoded, bool luma,
    std::span<const DecodeShape> shapes) {
  if (engines_ == nullptr) return DecodeChoice{.shape = shapes.back()};
  if (const absl::Status current = gpu_.MakeCurrent(); !current.ok())
    return Unavailable("GPU {}: {}", gpu_.info().index, Message(current));
  const NvjpegHandles::Use use(memory_);
  return questions_.Choose(encoded, luma, shapes);
}

absl::Status NvjpegSlot::Decode(std::span<JpegToDecode> images) {
  const NvjpegHandles::Use use(memory_);
  memory_->Reclaim();
  absl::Status status = DecodeAll(images);
  const auto used = std::ranges::count_if(batches_, &Batch::used);
  if (!absl::IsResourceExhausted(status) || used <= 1) return status;
  // The states of other samplings hold the memory of their largest batches.
  RETURN_IF_ERROR(gpu_.WaitStream(stream_));
  for (Batch& batch : batches_)
    if (batch.used) RETURN_IF_ERROR(RenewBatch(&batch));
  return DecodeAll(images);
}

absl::Status NvjpegSlot::DecodeAll(std::span<JpegToDecode> images) {
  for_engines_.clear();
  for (JpegToDecode& image : images) {
    if (image.choice.engines)
      for_engines_.push_back(&image);
    else
      RETURN_IF_ERROR(DecodeByCuda(&image, stream_));
  }
  if (for_engines_.size() > shapes_.size())
    return Internal("{} images at a time, want {} at most", for_engines_.size(),
                    shapes_.size());
  const auto batch_of = [](const JpegToDecode* image) {
    return image->choice.batch;
  };
  std::ranges::stable_sort(for_engines_, {}, batch_of);
  for (size_t begin = 0, end = 0; begin < for_engines_.size(); begin = end) {
    Batch& batch = batches_[batch_of(for_engines_[begin])];
    for (end = begin; end < for_engines_.size() &&
                      &batches_[batch_of(for_engines_[end])] == &batch;)
      ++end;
    batch.used = true;
    // It could not be made anew.
    if (batch.state == nullptr) RETURN_IF_ERROR(CreateBatch(&batch));
    RETURN_IF_ERROR(DecodeBatch(
        std::span(for_engines_).subspan(begin, end - begin), batch, stream_));
  }
  return absl::OkStatus();
}

// One bad image among n costs 2 · log₂ n batches instead of one.
absl::Status NvjpegSlot::DecodeBatch(std::span<JpegToDecode*> images,
                                     const Batch& batch, cuda::Stream stream) {
  if (images.empty()) return absl::OkStatus();
  if (images.size() == 1) return DecodeAlone(images, batch, stream);
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

absl::Status NvjpegSlot::DecodeAlone(std::span<JpegToDecode*> image,
                                     const Batch& batch, cuda::Stream stream) {
  bool settled = false;
  for (int attempt = 0; attempt < kDecodeTries && !settled; ++attempt) {
    const NvjpegResult result = CallBatched(image, batch, stream);
    ASSIGN_OR_RETURN(settled, Settle(result, kBatchedCall, image[0], stream));
  }
  return absl::OkStatus();
}

NvjpegResult NvjpegSlot::CallBatched(std::span<JpegToDecode*> images,
                                     const Batch& batch, cuda::Stream stream) {
  data_.clear();
  sizes_.clear();
  outputs_.clear();
  // Each image of a Decode has parameters of its own.
  cuda::NvjpegParams* const params =
      shapes_.data() + (images.data() - for_engines_.data());
  for (size_t i = 0; i < images.size(); ++i) {
    const JpegToDecode& image = *images[i];
    const NvjpegResult set =
        SetParams(nvjpeg_, params[i], image.luma, image.choice.shape);
    if (set != NvjpegResult::kSuccess) return set;
    data_.push_back(DataOf(image.encoded));
    sizes_.push_back(image.encoded.size());
    outputs_.push_back(OutputOf(image));
  }
  const NvjpegResult ready = nvjpeg_.DecodeBatchedInitialize(
      engines_, batch.state, static_cast<int>(images.size()), 1, batch.format);
  if (ready != NvjpegResult::kSuccess) return ready;
  return nvjpeg_.DecodeBatchedEx(engines_, batch.state, data_.data(),
                                 sizes_.data(), outputs_.data(), params,
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
