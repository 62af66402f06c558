// SPDX-License-Identifier: Apache-2.0
#include "worker/job/row_partner.h"

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<RowInput> RowPartner::Read(uint64_t pass, uint64_t sample) {
  const SourceRuntime& source = job_.SourceOf(sample);
  ASSIGN_OR_RETURN(
      stored_,
      source.records().Read({.sample = sample, .read_ahead = row_.records}));
  forms_.emplace(source.records().FormsOf(sample, row_.epoch, stored_));
  RowInput input = source.InputOf(row_, pass, sample);
  input.fields = stored_.fields;
  input.forms = &*forms_;
  return input;
}

absl::StatusOr<RowInput> RowPartner::Input() {
  const RowOf partner = job_.PartnerOf(row_);
  return Read(job_.PassOf(partner), partner.sample);
}

absl::Status RowPartner::Try(uint64_t pass, uint64_t sample,
                             const Compute& compute) {
  ASSIGN_OR_RETURN(const RowInput input, Read(pass, sample));
  return job_.SourceOf(sample).records().OfRecord(sample, compute(input));
}

absl::Status RowPartner::AsPolicySays(const Compute& compute) {
  const RowOf partner = job_.PartnerOf(row_);
  const uint64_t pass = job_.PassOf(partner), sample = partner.sample;
  absl::Status status = Try(pass, sample, compute);
  if (!IsBad(status, row_.absent)) return status;
  job_.rule().Report(sample, status);
  if (job_.rule().policy() != BadSamplePolicy::kReplace)
    return Annotate(status, fmt::format("its partner, sample {}", sample));
  RowCandidate candidate(pass, sample, row_.absent);
  candidate.reason = status;
  status = job_.rule().Replace(
      &candidate, [&] { return Try(pass, candidate.candidate, compute); });
  // The partner is bad if all substitutes are.
  return IsBad(status, row_.absent) ? Annotate(status, "its partner") : status;
}

absl::Status RowPartner::With(const Compute& compute) {
  status_ = AsPolicySays(compute);
  return status_;
}

}  // namespace leat::worker
