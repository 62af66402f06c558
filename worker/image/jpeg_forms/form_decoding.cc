// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg_forms/form_decoding.h"

#include "core/status.h"
#include "worker/image/jpeg_forms/library_check.h"

namespace leat::worker {
namespace {

absl::Status NothingRecorded() {
  return FailedPrecondition(
      "no form of the JPEG was made: no decoding was told to");
}

}  // namespace

void FormDecoding::Open(std::span<const std::byte> file, const JpegForm* form) {
  file_ = file;
  form_ = form;
  kinds_ = {};
  recording_ = absl::OkStatus();
  used_ = given_up_ = false;
}

void FormDecoding::Record(FormKinds kinds, size_t max_bytes) {
  kinds_ = kinds;
  max_bytes_ = max_bytes;
  recording_ = NothingRecorded();
}

void FormDecoding::Begin(j_decompress_ptr cinfo) {
  used_ = false;
  if (given_up_ || (form_ == nullptr && !kinds_.any())) return;
  recording_ = CheckHasForms(*cinfo);
  if (!recording_.ok()) return;
  wanted_ = {};
  const bool reads_codes =
      kinds_.any() || form_->kind() != JpegFormKind::kCoefficients;
  if (!LibraryTakesMcus() ||
      !DescribeScan(*cinfo, file_, reads_codes ? &tables_ : nullptr, &scan_,
                    &wanted_)) {
    recording_ = Unimplemented(
        "forms of JPEGs are off: libjpeg is not one that takes coefficients");
    return;
  }
  if (kinds_.any()) {
    recorder_.Begin(file_, scan_, wanted_, kinds_, max_bytes_);
    TakeMcusFrom(&recorder_, cinfo);
  } else if (form_->Fits(scan_.layout, file_.size())) {
    TakeMcusFrom(form_->Begin(scan_, wanted_, &readers_), cinfo);
    used_ = true;
  }
}

void FormDecoding::GiveUp() {
  given_up_ = true;
  used_ = false;
}

absl::StatusOr<std::unique_ptr<const JpegForm>> FormDecoding::Take(
    JpegFormKind kind) {
  if (!kinds_.Has(kind)) return NothingRecorded();
  RETURN_IF_ERROR(recording_);
  return recorder_.Make(kind);
}

}  // namespace leat::worker
