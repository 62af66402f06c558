// SPDX-License-Identifier: Apache-2.0
//
// BadSampleRule: decides what becomes of a row whose sample cannot be computed.
//
// A sample is bad if its bytes are: corrupt, no image, over a limit. A sample
// that this worker finds missing or changed is bad if the row's request says
// that others do not find it either (RowOf::absent). Any other error fails the
// row under every policy, so that the consumer asks another worker.
//
// The job's policy decides the rest. For example row 3 holds sample 40, which
// is corrupt:
//
//   kFail     the row's error names sample 40
//   kReplace  the row is computed from Plan::Substitute(40, 0); if that is bad,
//             from Substitute(40, 1), and so on; after kMaxSubstitutes the row
//             fails
//   kZero     the row becomes zeros, and is not valid
//
// Each bad sample is reported once per row that meets it. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "worker/job/bad_samples.h"

namespace leat::worker {

// True if the error makes a sample bad, given the samples known to be absent.
bool IsBad(const absl::Status& status, std::span<const uint64_t> absent);

// A row, and the sample that it is computed from at present.
struct RowCandidate {
  RowCandidate() = default;
  RowCandidate(uint64_t pass, uint64_t sample, std::span<const uint64_t> absent)
      : pass(pass), sample(sample), absent(absent), candidate(sample) {}

  uint64_t pass = 0;  // the epoch of the row's random draws
  uint64_t sample = 0;
  std::span<const uint64_t> absent;  // RowOf::absent
  uint64_t candidate = 0;            // `sample` or a substitute
  uint32_t substitutes = 0;          // that were tried
  absl::Status reason;               // why `sample` is bad
  bool partner_bad = false;          // rather than the candidate
};

class BadSampleRule {
 public:
  // Computes or prepares the row from its candidate, and sets `partner_bad`.
  using Try = absl::FunctionRef<absl::Status()>;

  // Returns where a sample is stored, for messages.
  using Describe = std::function<std::string(uint64_t sample)>;

  // The objects pointed to outlive this.
  BadSampleRule(const JobInfo* job, const Plan* plan, Describe describe,
                BadSamples* reports)
      : job_(*job),
        plan_(*plan),
        describe_(std::move(describe)),
        reports_(*reports) {}

  BadSamplePolicy policy() const { return job_.spec.on_bad_sample; }

  // `status` says that the row's candidate is bad: reports it, and does what
  // the policy says. OK: the row has been computed from a substitute or, under
  // kZero, is to become zeros.
  absl::Status AfterBadSample(RowCandidate* row, const absl::Status& status,
                              Try try_candidate) const;
  // Tries the row's next substitutes until one is not bad, and reports the bad
  // ones.
  absl::Status Replace(RowCandidate* row, Try try_candidate) const;
  void Report(uint64_t sample, const absl::Status& reason) const;

 private:
  // Returns a permanent error of the row, which every worker would return.
  static absl::Status Final(const absl::Status& status);
  std::string NameOf(uint64_t sample) const;

  const JobInfo& job_;
  const Plan& plan_;
  const Describe describe_;
  BadSamples& reports_;
};

}  // namespace leat::worker
