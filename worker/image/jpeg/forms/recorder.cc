// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/recorder.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {

void FormRecorder::Begin(std::span<const std::byte> file, const FileScan& scan,
                         const WantedBlocks& wanted, FormKinds kinds,
                         size_t max_bytes) {
  file_ = file;
  scan_ = &scan;
  wanted_ = &wanted;
  kinds_ = kinds;
  row_ = column_ = 0;
  failed_ = false;
  runner_.Begin(scan);
  bits_ = ScanBits::From(scan.data);
  predictors_ = {};
  entries_.clear();
  writer_.Begin(file.size(), kinds.coefficients ? max_bytes : 0);
}

size_t FormRecorder::held() const {
  return entries_.capacity() + writer_.held();
}

bool FormRecorder::Next(JBLOCKROW* blocks) {
  const ScanLayout& layout = scan_->layout;
  if (failed_ || row_ >= layout.rows) return false;
  if (kinds_.seek_index && column_ % SeekIndex::kStep == 0)
    AppendSeekEntry(*scan_, bits_, predictors_, &entries_);
  if (kinds_.coefficients && column_ == 0) writer_.BeginRow();
  if (blocks != nullptr && !wanted_->Has(column_)) blocks = nullptr;
  uint8_t* const to = kinds_.coefficients ? writer_.Room() : nullptr;
  failed_ =
      !(to != nullptr ? DecodeAndRecord(blocks, to) : DecodeMcu(blocks)) ||
      bits_.Overrun();
  if (++column_ == layout.columns) {
    column_ = 0;
    ++row_;
  }
  return !failed_;
}

bool FormRecorder::DecodeMcu(JBLOCKROW* blocks) {
  const FileScan& scan = *scan_;
  if (blocks == nullptr)
    return runner_.Run(scan.layout.blocks, &bits_, &predictors_);
  for (size_t i = 0; i < scan.layout.blocks; ++i) {
    int32_t* const predictor = &predictors_[scan.layout.component_of[i]];
    StoreSink store{blocks[i][0]};
    const bool sound =
        wanted_->of_needed_component[i]
            ? DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor, store)
            : SkipBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor);
    if (!sound) return false;
  }
  return true;
}

bool FormRecorder::DecodeAndRecord(JBLOCKROW* blocks, uint8_t* to) {
  const FileScan& scan = *scan_;
  for (size_t i = 0; i < scan.layout.blocks; ++i) {
    const bool store = blocks != nullptr && wanted_->of_needed_component[i];
    CoefficientSink sink(to, store ? blocks[i][0] : dropped_);
    if (!DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i],
                     &predictors_[scan.layout.component_of[i]], sink))
      return false;
    to = sink.Finish();
  }
  writer_.Took(to);
  return true;
}

absl::Status FormRecorder::Finish() {
  while (!failed_ && row_ < scan_->layout.rows) {
    if (column_ == 0 && give_up_ != nullptr && *give_up_ != 0)
      return Cancelled("the decoding was given up");
    Next(nullptr);
  }
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
  return writer_.Make(header, {reinterpret_cast<const uint8_t*>(file_.data()),
                               scan_->layout.scan_begin});
}

}  // namespace leat::worker
