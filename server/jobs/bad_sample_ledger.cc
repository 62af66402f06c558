// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/bad_sample_ledger.h"

#include "core/plan/source_names.h"
#include "core/status.h"

namespace leat::server {
namespace {

// An error names at most this many records.
constexpr size_t kNamedRecords = 3;

}  // namespace

std::string TextOf(const v1::BadSample& sample) {
  return fmt::format("{}{}: {}",
                     sample.source().empty()
                         ? ""
                         : fmt::format("source \"{}\": ", sample.source()),
                     sample.record(), sample.reason());
}

bool SampleSet::Insert(uint64_t sample) {
  const uint64_t bit = sample % kBlockBits;
  uint64_t& word = blocks_[sample / kBlockBits][bit / 64];
  const uint64_t mask = uint64_t{1} << (bit % 64);
  if ((word & mask) != 0) return false;
  word |= mask;
  ++size_;
  return true;
}

void BadSampleLedger::Describe(const JobInfo& job,
                               std::span<const v1::BadSample> samples) {
  Seen& seen = jobs_[job.spec.name];
  for (const v1::BadSample& sample : samples) {
    seen.total += sample.count();
    const auto it = seen.first.find(sample.sample());
    if (it != seen.first.end())
      it->second.set_count(it->second.count() + sample.count());
    else if (seen.first.size() < max_listed_)
      (seen.first[sample.sample()] = sample)
          .set_source(std::string(SourceNameOf(job, sample.sample())));
  }
}

void BadSampleLedger::Count(const Digest& plan, uint64_t num_samples,
                            std::span<const uint64_t> samples) {
  SampleSet& set = plans_[plan];
  for (const uint64_t sample : samples)
    if (sample < num_samples) set.Insert(sample);
}

uint64_t BadSampleLedger::Different(const Digest& plan) const {
  const auto it = plans_.find(plan);
  return it == plans_.end() ? 0 : it->second.size();
}

absl::Status BadSampleLedger::Verdict(const JobInfo& job) const {
  if (!job.spec.max_bad) return absl::OkStatus();
  const uint64_t samples = NumSamples(job);
  const uint64_t allowed = AllowedBadSamples(job.spec, samples);
  const uint64_t bad = Different(job.plan_hash);
  if (bad <= allowed) return absl::OkStatus();
  std::string named;
  if (const auto seen = jobs_.find(job.spec.name); seen != jobs_.end()) {
    size_t listed = 0;
    for (const auto& [sample, met] : seen->second.first) {
      if (listed++ == kNamedRecords) break;
      named += fmt::format("{} {}", named.empty() ? "; the first:" : ";",
                           TextOf(met));
    }
  }
  return DataLoss(
      "job {}: {} of {} samples are bad, but max_bad {} allows {}{}",
      job.spec.name, bad, samples, *job.spec.max_bad, allowed, named);
}

}  // namespace leat::server
