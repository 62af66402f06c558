// SPDX-License-Identifier: Apache-2.0
#include "worker/job/bad_samples.h"

#include <utility>

#include "core/utf8.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxRecordNameBytes = 1024, kMaxReasonBytes = 512;

}  // namespace

void BadSamples::Merge(const std::string& job, uint64_t sample,
                       const Entry& entry) {
  auto it = report_.find(job);
  if (it == report_.end()) {
    if (report_.size() >= max_jobs_) return;
    it = report_.emplace(job, std::map<uint64_t, Entry>()).first;
  }
  if (it->second.size() >= per_job_ && !it->second.contains(sample)) return;
  Entry& known = it->second[sample];
  if (known.count == 0)
    known = {.record = entry.record, .reason = entry.reason};
  known.count += entry.count;
}

void BadSamples::Add(std::string_view job, uint64_t sample,
                     std::string_view record, std::string_view reason) {
  ++total_;
  MutexLock lock(&mu_);
  Merge(std::string(job), sample,
        {.record = ToUtf8(record, kMaxRecordNameBytes),
         .reason = ToUtf8(reason, kMaxReasonBytes),
         .count = 1});
}

BadSamples::Report BadSamples::Take() {
  MutexLock lock(&mu_);
  return std::exchange(report_, {});
}

void BadSamples::Return(const Report& report) {
  MutexLock lock(&mu_);
  for (const auto& [job, samples] : report)
    for (const auto& [sample, entry] : samples) Merge(job, sample, entry);
}

void BadSamples::CountLocked(const Digest& plan, uint64_t sample) {
  if (num_counted_ >= max_counted_) return;
  if (counted_[plan].insert(sample).second) ++num_counted_;
}

void BadSamples::Count(const Digest& plan, uint64_t sample) {
  MutexLock lock(&mu_);
  CountLocked(plan, sample);
}

BadSamples::Counted BadSamples::TakeCounted(size_t limit) {
  Counted taken;
  MutexLock lock(&mu_);
  while (limit > 0 && !counted_.empty()) {
    const auto plan = counted_.begin();
    std::set<uint64_t>& to = taken[plan->first];
    for (; limit > 0 && !plan->second.empty(); --limit, --num_counted_)
      to.insert(plan->second.extract(plan->second.begin()));
    if (plan->second.empty()) counted_.erase(plan);
  }
  return taken;
}

void BadSamples::ReturnCounted(const Counted& counted) {
  MutexLock lock(&mu_);
  for (const auto& [plan, samples] : counted)
    for (const uint64_t sample : samples) CountLocked(plan, sample);
}

}  // namespace leat::worker
