// SPDX-License-Identifier: Apache-2.0
//
// BadSampleLedger counts the samples that workers could not turn into rows.
//
// It keeps two accounts. By job, for people: how often, and the first samples
// with their reasons. By plan, for budgets (JobSpec::max_bad): every different
// sample once, since any number of workers and epochs meet the same ones.
//
// Which samples are bad is a property of the dataset and the plan. An epoch
// that was read to its end therefore has the same count wherever it was
// computed, and always gets the same verdict. When the verdict falls depends on
// the reports: a job is given up as soon as the count is over its budget.
// Nothing is durable: after a restart the count starts again at zero and grows
// as epochs meet the samples again.
//
//   dataset of 1,000, max_bad 0.002, so 2 may be bad
//   report {7, 9}     -> 2 different, on
//   report {9} again  -> 2 different, on
//   report {12}       -> 3 different: Verdict is an error from here on
//
// A plan's count takes at most one bit per sample. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "server/state/types.h"

namespace leat::server {

// SampleSet is a set of samples, in blocks of bits: memory follows the number
// of samples in sparse sets, and is one bit per sample in full ones.
class SampleSet {
 public:
  // Returns false if the sample was there before.
  bool Insert(uint64_t sample);
  uint64_t size() const { return size_; }

 private:
  static constexpr uint64_t kBlockBits = 4096;
  std::map<uint64_t, std::array<uint64_t, kBlockBits / 64>> blocks_;
  uint64_t size_ = 0;
};

// For people: `source "web": /web/a.jpg: no JPEG`; without a source in a job that
// is no mixture.
std::string TextOf(const v1::BadSample& sample);

class BadSampleLedger {
 public:
  struct Seen {
    uint64_t total = 0;                       // times met
    std::map<uint64_t, v1::BadSample> first;  // by sample
  };

  // At most `max_listed` samples of a job are listed; all are counted.
  explicit BadSampleLedger(size_t max_listed) : max_listed_(max_listed) {}

  // Sets the source of each sample.
  void Describe(const JobInfo& job, std::span<const v1::BadSample> samples);
  // Ignores samples that are not below `num_samples`.
  void Count(const Digest& plan, uint64_t num_samples,
             std::span<const uint64_t> samples);
  void ForgetJob(const std::string& job) { jobs_.erase(job); }
  void ForgetPlan(const Digest& plan) { plans_.erase(plan); }

  const std::map<std::string, Seen, std::less<>>& jobs() const { return jobs_; }
  // Returns the number of different bad samples counted for the plan.
  uint64_t Different(const Digest& plan) const;
  // kDataLoss: the job has a budget, and more samples are bad; names count,
  // budget and the first records.
  absl::Status Verdict(const JobInfo& job) const;

 private:
  const size_t max_listed_;
  std::map<std::string, Seen, std::less<>> jobs_;
  std::map<Digest, SampleSet> plans_;
};

}  // namespace leat::server
