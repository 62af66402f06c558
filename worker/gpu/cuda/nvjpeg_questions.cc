// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_questions.h"

#include <utility>

#include "core/status.h"
#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/nvjpeg_fault.h"
#include "worker/gpu/cuda/nvjpeg_image.h"

namespace leat::worker {

using cuda::NvjpegResult;

NvjpegQuestions::~NvjpegQuestions() { Close(); }

absl::Status NvjpegQuestions::Open(cuda::NvjpegHandle engines) {
  engines_ = engines;
  ASSIGN_OR_RETURN(std::unique_ptr<Asker> first, Take());
  GiveBack(std::move(first));
  return absl::OkStatus();
}

void NvjpegQuestions::Close() {
  MutexLock lock(&mu_);
  for (const std::unique_ptr<Asker>& asker : free_) Destroy(asker.get());
  free_.clear();
}

absl::Status NvjpegQuestions::Make(Asker* asker) const {
  RETURN_IF_ERROR(asker->bitstream.Open(engines_));
  RETURN_IF_ERROR(
      cuda::Check(nvjpeg_.DecodeParamsCreate(engines_, &asker->params),
                  "nvjpegDecodeParamsCreate"));
  return SetUpright(nvjpeg_, asker->params);
}

void NvjpegQuestions::Destroy(Asker* asker) const {
  if (asker->params != nullptr)
    gpu_.Released(nvjpeg_.DecodeParamsDestroy(asker->params),
                  "nvjpegDecodeParamsDestroy");
  asker->bitstream.Close();
}

absl::StatusOr<std::unique_ptr<NvjpegQuestions::Asker>>
NvjpegQuestions::Take() {
  {
    MutexLock lock(&mu_);
    if (!free_.empty()) {
      std::unique_ptr<Asker> asker = std::move(free_.back());
      free_.pop_back();
      return asker;
    }
  }
  auto asker = std::make_unique<Asker>(&nvjpeg_, &gpu_);
  const absl::Status made = Make(asker.get());
  if (made.ok()) return asker;
  Destroy(asker.get());
  return made;
}

void NvjpegQuestions::GiveBack(std::unique_ptr<Asker> asker) {
  MutexLock lock(&mu_);
  free_.push_back(std::move(asker));
}

absl::StatusOr<DecodeChoice> NvjpegQuestions::Choose(
    std::span<const std::byte> encoded, bool luma,
    std::span<const DecodeShape> shapes) {
  const DecodeChoice by_cuda{.shape = shapes.back()};
  auto asker = Take();
  if (!asker.ok())
    return Unavailable("GPU {}: {}", gpu_.info().index,
                       Message(asker.status()));
  NvjpegResult result = NvjpegResult::kSuccess;
  DecodeChoice choice;
  for (int attempt = 0; attempt < kDecodeTries; ++attempt) {
    choice = by_cuda;
    result = Ask(encoded, luma, shapes, asker->get(), &choice);
    if (result != NvjpegResult::kSuccess &&
        DecodeFaultOf(result) == DecodeFault::kImage) {
      choice = by_cuda;
      result = NvjpegResult::kSuccess;
    }
    if (result == NvjpegResult::kSuccess) break;
  }
  GiveBack(*std::move(asker));
  if (result == NvjpegResult::kSuccess) return choice;
  return Unavailable("GPU {}: {}", gpu_.info().index,
                     Message(cuda::Check(result, "asking nvJPEG")));
}

// Reads all markers, not the header alone: a file whose scan is cut short or
// malformed makes a whole batch of the engines fail.
NvjpegResult NvjpegQuestions::Ask(std::span<const std::byte> encoded, bool luma,
                                  std::span<const DecodeShape> shapes,
                                  Asker* asker, DecodeChoice* choice) const {
  NvjpegResult result = asker->bitstream.Parse(encoded);
  if (result != NvjpegResult::kSuccess) return result;
  const cuda::NvjpegStream parsed = asker->bitstream.parsed();
  cuda::NvjpegSubsampling sampling = cuda::NvjpegSubsampling::kUnknown;
  result = nvjpeg_.JpegStreamGetChromaSubsampling(parsed, &sampling);
  if (result != NvjpegResult::kSuccess) return result;
  for (const DecodeShape& shape : shapes) {
    int refused = 1;
    result = SetParams(nvjpeg_, asker->params, luma, shape);
    if (result == NvjpegResult::kSuccess)
      result = nvjpeg_.DecodeBatchedSupportedEx(engines_, parsed, asker->params,
                                                &refused);
    if (result == NvjpegResult::kSuccess && refused == 0) {
      *choice = {.engines = true,
                 .shape = shape,
                 .batch = NvjpegBatchOf(luma, sampling)};
      return result;
    }
    // The engines refuse this image or this shape: try the next one.
    if (result != NvjpegResult::kSuccess &&
        DecodeFaultOf(result) != DecodeFault::kImage)
      return result;
  }
  return NvjpegResult::kSuccess;
}

}  // namespace leat::worker
