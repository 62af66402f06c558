// SPDX-License-Identifier: Apache-2.0
//
// RowPartner: the row of the same step whose values a row of a job uses,
// according to the plan. A row that does not hold the plan's sample (a sample
// that is inspected by itself) is its own partner.
//
// If the partner's sample is bad, the job's policy decides. Under kReplace the
// first of its substitutes whose values can be computed takes its place, as it
// does in the partner's own row. Otherwise the row that uses it fails as its
// partner's row does, or is zeros and not valid. Thread-compatible.
#pragma once

#include <optional>

#include "worker/cache/sample_forms.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {

class RowPartner final : public PartnerRow {
 public:
  // `job` outlives this, and so do the objects that `row` refers to.
  RowPartner(const JobRuntime& job, const RowOf& row) : job_(job), row_(row) {}

  absl::StatusOr<RowInput> Input() override;
  absl::Status With(const Compute& compute) override;

  // True if the last With failed: the program's error is about the partner.
  bool failed() const { return !status_.ok(); }
  // True if the partner's sample is bad, and no other can take its place.
  bool bad() const { return IsBad(status_, row_.absent); }

 private:
  // `pass`: the partner's.
  absl::StatusOr<RowInput> Read(uint64_t pass, uint64_t sample);
  absl::Status Try(uint64_t pass, uint64_t sample, const Compute& compute);
  absl::Status AsPolicySays(const Compute& compute);

  const JobRuntime& job_;
  const RowOf row_;
  StoredSample stored_;
  std::optional<SampleForms> forms_;
  absl::Status status_;
};

}  // namespace leat::worker
