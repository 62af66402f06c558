// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg_forms/recorder.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/image/jpeg_forms/blocks.h"
#include "worker/image/jpeg_forms/coefficients.h"
#include "worker/image/jpeg_forms/seek_index.h"

namespace leat::worker {
namespace {

// What an MCU may write, refused blocks included.
constexpr size_t kMostMcuBytes =
    kMaxMcuBlocks * (Coefficients::kMaxBlockBytes + 16);

template <class Number>
void Append(Number number, std::vector<uint8_t>* to) {
  uint8_t bytes[sizeof number];
  StoreLittle(number, bytes);
  to->insert(to->end(), bytes, bytes + sizeof number);
}

}  // namespace

void FormRecorder::Begin(std::span<const std::byte> file, const FileScan& scan,
                         const WantedBlocks& wanted, FormKinds kinds,
                         size_t max_bytes) {
  file_ = file;
  scan_ = &scan;
  wanted_ = &wanted;
  kinds_ = kinds;
  max_bytes_ = max_bytes;
  row_ = column_ = 0;
  failed_ = too_large_ = false;
  bits_ = ScanBits::From(scan.data);
  predictors_ = {};
  entries_.clear();
  row_offsets_.clear();
  block_bytes_ = 0;
}

size_t FormRecorder::held() const {
  return entries_.capacity() + row_offsets_.capacity() + blocks_.capacity();
}

void FormRecorder::AddEntry() {
  Append(bits_.Offset(scan_->data), &entries_);
  for (size_t i = 0; i < scan_->layout.components; ++i)
    Append(static_cast<uint16_t>(predictors_[i]), &entries_);
}

bool FormRecorder::HasRoom() {
  if (block_bytes_ > max_bytes_) {
    too_large_ = true;
    kinds_.coefficients = false;
    return false;
  }
  if (blocks_.size() < block_bytes_ + kMostMcuBytes)
    blocks_.resize(
        std::max(2 * blocks_.size(), 2 * file_.size() + kMostMcuBytes));
  return true;
}

bool FormRecorder::Next(JBLOCKROW* blocks) {
  const ScanLayout& layout = scan_->layout;
  if (failed_ || row_ >= layout.rows) return false;
  if (kinds_.seek_index && column_ % SeekIndex::kStep == 0) AddEntry();
  if (kinds_.coefficients && column_ == 0)
    Append(static_cast<uint32_t>(block_bytes_), &row_offsets_);
  if (blocks != nullptr && !wanted_->Has(column_)) blocks = nullptr;
  failed_ = !(kinds_.coefficients && HasRoom() ? DecodeAndRecord(blocks)
                                               : DecodeMcu(blocks)) ||
            bits_.Overrun();
  if (++column_ == layout.columns) {
    column_ = 0;
    ++row_;
  }
  return !failed_;
}

bool FormRecorder::DecodeMcu(JBLOCKROW* blocks) {
  const FileScan& scan = *scan_;
  for (size_t i = 0; i < scan.layout.blocks; ++i) {
    int32_t* const predictor = &predictors_[scan.layout.component_of[i]];
    StoreSink store{blocks == nullptr ? nullptr : blocks[i][0]};
    DropSink drop;
    const bool sound =
        blocks != nullptr && wanted_->of_needed_component[i]
            ? DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor, store)
            : DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor, drop);
    if (!sound) return false;
  }
  return true;
}

bool FormRecorder::DecodeAndRecord(JBLOCKROW* blocks) {
  const FileScan& scan = *scan_;
  uint8_t* to = blocks_.data() + block_bytes_;
  for (size_t i = 0; i < scan.layout.blocks; ++i) {
    const bool store = blocks != nullptr && wanted_->of_needed_component[i];
    CoefficientSink sink(to, store ? blocks[i][0] : dropped_);
    if (!DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i],
                     &predictors_[scan.layout.component_of[i]], sink))
      return false;
    to = sink.Finish();
  }
  block_bytes_ = static_cast<size_t>(to - blocks_.data());
  return true;
}

absl::Status FormRecorder::Finish() {
  while (!failed_ && row_ < scan_->layout.rows) Next(nullptr);
  if (failed_)
    return DataLoss(
        "JPEG's data break off, or have a code that is none, in MCU row {} of "
        "{}: no form is made of it",
        row_, scan_->layout.rows);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const JpegForm>> FormRecorder::Make(
    JpegFormKind kind) {
  RETURN_IF_ERROR(Finish());
  const McuForm::Header header{
      .layout = scan_->layout,
      .file_bytes = static_cast<uint32_t>(file_.size()),
      .file_crc = Crc32c(file_)};
  if (kind == JpegFormKind::kSeekIndex)
    return SeekIndex::Of(header, SealForm(kind, header, {entries_}));
  if (too_large_)
    return ResourceExhausted(
        "coefficients of a JPEG of {} bytes are over the limit of {}",
        file_.size(), max_bytes_);
  const std::span<const uint8_t> file_header(
      reinterpret_cast<const uint8_t*>(file_.data()), scan_->layout.scan_begin);
  constexpr uint8_t kEndOfImage[] = {0xff, 0xd9};
  uint8_t sizes[8];
  StoreLittle(static_cast<uint32_t>(file_header.size() + 2), sizes);
  StoreLittle(static_cast<uint32_t>(block_bytes_), sizes + 4);
  return Coefficients::Of(
      header,
      SealForm(kind, header,
               {sizes, file_header, kEndOfImage, row_offsets_,
                std::span<const uint8_t>(blocks_).first(block_bytes_)}));
}

}  // namespace leat::worker
