// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/coefficient_writer.h"

#include <algorithm>

#include "core/status.h"
#include "worker/image/jpeg/forms/coefficients.h"

namespace leat::worker {
namespace {

// The most that an MCU may write, refused blocks included.
constexpr size_t kMostMcuBytes =
    kMaxMcuBlocks * (Coefficients::kMaxBlockBytes + 16);

}  // namespace

void CoefficientWriter::Begin(size_t file_bytes, size_t max_bytes) {
  file_bytes_ = file_bytes;
  max_bytes_ = std::min<size_t>(max_bytes, UINT32_MAX - kMostMcuBytes);
  too_large_ = false;
  row_offsets_.clear();
  block_bytes_ = 0;
}

void CoefficientWriter::BeginRow() {
  uint8_t offset[4];
  StoreLittle(static_cast<uint32_t>(block_bytes_), offset);
  row_offsets_.insert(row_offsets_.end(), offset, offset + sizeof offset);
}

uint8_t* CoefficientWriter::Room() {
  too_large_ = too_large_ || block_bytes_ > max_bytes_;
  if (too_large_) return nullptr;
  if (blocks_.size() < block_bytes_ + kMostMcuBytes)
    blocks_.resize(
        std::max(2 * blocks_.size(), 2 * file_bytes_ + kMostMcuBytes));
  return blocks_.data() + block_bytes_;
}

absl::StatusOr<std::unique_ptr<const JpegForm>> CoefficientWriter::Make(
    const McuForm::Header& header, std::span<const uint8_t> file_header) {
  if (too_large_)
    return ResourceExhausted(
        "coefficients of a JPEG of {} bytes are over the limit of {}",
        file_bytes_, max_bytes_);
  constexpr uint8_t kEndOfImage[] = {0xff, 0xd9};
  uint8_t sizes[8];
  StoreLittle(static_cast<uint32_t>(file_header.size() + 2), sizes);
  StoreLittle(static_cast<uint32_t>(block_bytes_), sizes + 4);
  return Coefficients::Of(
      header,
      SealForm(JpegFormKind::kCoefficients, header,
               {sizes, file_header, kEndOfImage, row_offsets_,
                std::span<const uint8_t>(blocks_).first(block_bytes_)}));
}

}  // namespace leat::worker
