// SPDX-License-Identifier: Apache-2.0
#include "worker/job/bad_sample_rule.h"

#include <algorithm>
#include <optional>

#include "core/cluster/fault.h"
#include "core/plan/source_names.h"
#include "core/status.h"

namespace leat::worker {

bool IsBad(const absl::Status& status, std::span<const uint64_t> absent) {
  const std::optional<Fault> fault = FaultOf(status);
  if (fault == Fault::kSample) return true;
  const std::optional<uint64_t> sample = SampleOf(status);
  return fault == Fault::kObject && sample.has_value() &&
         std::ranges::find(absent, *sample) != absent.end();
}

absl::Status BadSampleRule::Final(const absl::Status& status) {
  return WithFault(status, Fault::kSample);
}

absl::Status BadSampleRule::AfterBadSample(RowCandidate* row,
                                           const absl::Status& status,
                                           Try try_candidate) const {
  if (row->reason.ok()) row->reason = status;
  if (!row->partner_bad) Report(row->candidate, status);
  switch (policy()) {
    case BadSamplePolicy::kZero:
      return absl::OkStatus();
    case BadSamplePolicy::kFail:
      return Final(Annotate(status, NameOf(row->sample)));
    case BadSamplePolicy::kReplace:
      break;
  }
  if (row->partner_bad) return Final(status);
  return Replace(row, try_candidate);
}

absl::Status BadSampleRule::Replace(RowCandidate* row,
                                    Try try_candidate) const {
  while (row->substitutes < kMaxSubstitutes) {
    row->candidate =
        plan_.Substitute(row->pass, row->sample, row->substitutes++);
    const absl::Status status = try_candidate();
    if (!IsBad(status, row->absent)) return status;
    if (row->partner_bad) return Final(status);
    Report(row->candidate, status);
  }
  return Final(
      Annotate(row->reason, fmt::format("{}, and its {} substitutes too",
                                        NameOf(row->sample), kMaxSubstitutes)));
}

// Returns "sample 7", and in a mixture "source \"web\", sample 7".
std::string BadSampleRule::NameOf(uint64_t sample) const {
  const std::string_view source = SourceNameOf(job_, sample);
  return source.empty()
             ? fmt::format("sample {}", sample)
             : fmt::format("source \"{}\", sample {}", source, sample);
}

void BadSampleRule::Report(uint64_t sample, const absl::Status& reason) const {
  if (policy() != BadSamplePolicy::kFail)
    reports_.Count(job_.plan_hash, sample);
  reports_.Add(job_.spec.name, sample, describe_(sample), Message(reason));
}

}  // namespace leat::worker
