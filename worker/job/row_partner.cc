// SPDX-License-Identifier: Apache-2.0
#include "worker/job/row_partner.h"

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<RowInput> RowPartner::Read(uint64_t pass, uint64_t sample) {
  ASSIGN_OR_RETURN(stored_, job_.Read(sample, row_.records));
  forms_.emplace(job_.FormsOf(sample, row_.epoch, stored_));
  return RowInput{.epoch = pass,
                  .sample = sample,
                  .fields = stored_.fields,
                  .step = row_.step,
                  .step_epoch = row_.epoch,
                  .forms = &*forms_};
}

absl::StatusOr<RowInput> RowPartner::Input() {
  const RowOf partner = job_.PartnerOf(row_);
  return Read(job_.PassOf(partner), partner.sample);
}

absl::Status RowPartner::Try(uint64_t pass, uint64_t sample,
                             const Compute& compute) {
  ASSIGN_OR_RETURN(const RowInput input, Read(pass, sample));
  return job_.OfRecord(sample, compute(input));
}

absl::Status RowPartner::AsPolicySays(const Compute& compute) {
  const RowOf partner = job_.PartnerOf(row_);
  const uint64_t pass = job_.PassOf(partner), sample = partner.sample;
  absl::Status status = Try(pass, sample, compute);
  if (!IsBad(status, row_.absent)) return status;
  const absl::Status reason = status;
  job_.Report(sample, reason);
  if (job_.job().spec.on_bad_sample != BadSamplePolicy::kReplace)
    return Annotate(reason, fmt::format("its partner, sample {}", sample));
  for (uint32_t attempt = 0; attempt < kMaxSubstitutes; ++attempt) {
    const uint64_t other = job_.plan().Substitute(pass, sample, attempt);
    status = Try(pass, other, compute);
    if (!IsBad(status, row_.absent)) return status;
    job_.Report(other, status);
  }
  return Annotate(JobRuntime::Exhausted(sample, reason), "its partner");
}

absl::Status RowPartner::With(const Compute& compute) {
  status_ = AsPolicySays(compute);
  return status_;
}

}  // namespace leat::worker
