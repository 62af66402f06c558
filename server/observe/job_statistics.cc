// SPDX-License-Identifier: Apache-2.0
#include "server/observe/job_statistics.h"

#include <algorithm>
#include <utility>

#include "server/observe/consumer_past.h"
#include "server/observe/history.h"

namespace leat::server {
namespace {

constexpr size_t kMaxReporters = 65'536;
constexpr size_t kMaxJudgedJobs = 4'096;
constexpr int kMaxJobsOfAWorker = 64;
constexpr Duration kSweepEvery = std::chrono::minutes(1);
constexpr Duration kGivenFor = std::chrono::minutes(1);
constexpr int64_t kKeepSlots = kLookBack / History::kSlot;
constexpr double kMostPlaces = 1 << 20;

double AsSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double GrownSeconds(uint64_t before, uint64_t after) {
  return after > before ? static_cast<double>(after - before) / 1e9 : 0;
}

double DecodeThreadsOf(const v1::WorkerStats& stats) {
  for (const v1::StageStats& each : stats.stages())
    if (each.stage() == v1::STAGE_DECODE)
      return std::clamp(static_cast<double>(each.places()), 1.0, kMostPlaces);
  return 1;
}

}  // namespace

void JobStatistics::BeginWorker(std::string_view name) {
  MutexLock lock(&mu_);
  last_.erase(std::string(name));
}

void JobStatistics::Note(const std::string& worker,
                         const v1::WorkerStats& stats, MonotonicTime now) {
  Report told{.at = now, .jobs = {}};
  for (const v1::JobRows& job : stats.job_rows()) {
    if (told.jobs.size() == kMaxJobsOfAWorker) break;
    told.jobs.emplace(job.job(), job);
  }
  const double threads = DecodeThreadsOf(stats);
  MutexLock lock(&mu_);
  Sweep(now);
  const auto last = last_.find(worker);
  if (last == last_.end()) {
    if (last_.size() < kMaxReporters && !told.jobs.empty())
      last_.emplace(worker, std::move(told));
    return;
  }
  if (now < last->second.at + History::kSlot) return;
  const double seconds = AsSeconds(now - last->second.at);
  const int64_t slot = History::SlotOf(now - History::kSlot);
  for (const auto& [name, job] : told.jobs)
    if (const auto before = last->second.jobs.find(name);
        before != last->second.jobs.end())
      Add(before->second, job, seconds, threads, slot);
  last->second = std::move(told);
}

void JobStatistics::Add(const v1::JobRows& before, const v1::JobRows& now,
                        double seconds, double threads, int64_t slot) {
  // Its streams ended meanwhile, and others began.
  if (now.rows_total() < before.rows_total()) return;
  const auto share = [seconds](uint64_t from, uint64_t to, double places) {
    return std::min(1.0, GrownSeconds(from, to) / places / seconds);
  };
  WorkerStatistics did;
  did.threads = threads;
  did.rows_per_s =
      static_cast<double>(now.rows_total() - before.rows_total()) / seconds;
  did.reading = share(before.read_ns_total(), now.read_ns_total(), threads);
  did.decoding =
      share(before.decode_ns_total(), now.decode_ns_total(), threads);
  did.for_input = share(before.input_ns_total(), now.input_ns_total(), 1);
  did.for_thread = share(before.thread_ns_total(), now.thread_ns_total(), 1);
  did.for_output = share(before.output_ns_total(), now.output_ns_total(), 1);
  did.fetching = std::min(
      kMostPlaces,
      GrownSeconds(before.fetch_ns_total(), now.fetch_ns_total()) / seconds);
  // While no group has been sent at all, groups count as sending.
  did.sending =
      now.groups_unsent() > 0 &&
              now.sending_ns_total() == before.sending_ns_total()
          ? 1
          : share(before.sending_ns_total(), now.sending_ns_total(),
                  std::max<double>(1, static_cast<double>(now.streams())));
  if (did.rows_per_s + did.for_input + did.for_thread + did.for_output +
          did.sending <=
      0)
    return;
  auto at = jobs_.find(now.job());
  if (at == jobs_.end()) {
    if (jobs_.size() >= kMaxJudgedJobs) return;
    at = jobs_.try_emplace(now.job()).first;
  }
  at->second.Add(slot, did);
}

void JobStatistics::Sweep(MonotonicTime now) {
  if (now < swept_at_ + kSweepEvery) return;
  swept_at_ = now;
  const int64_t oldest = History::SlotOf(now) - kKeepSlots;
  absl::erase_if(jobs_, [oldest](auto& job) {
    job.second.ForgetBefore(oldest);
    return job.second.empty();
  });
  absl::erase_if(last_, [now](const auto& each) {
    return each.second.at + kLookBack < now;
  });
  absl::erase_if(given_, [now](const auto& each) {
    return each.second.at + kGivenFor < now;
  });
}

std::optional<WorkerStatistics> JobStatistics::Mean(
    const std::string& job, const WaitsBySlot& waits) const {
  MutexLock lock(&mu_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  return found->second.Mean(waits, {});
}

Limit JobStatistics::Before(const std::string& job, MonotonicTime now) const {
  MutexLock lock(&mu_);
  const auto found = given_.find(job);
  return found == given_.end() || found->second.at + kGivenFor < now
             ? Limit::kUnknown
             : found->second.limit;
}

void JobStatistics::Give(const std::string& job, Limit limit,
                         MonotonicTime now) {
  MutexLock lock(&mu_);
  const auto found = given_.find(job);
  if (found == given_.end() && given_.size() >= kMaxJudgedJobs) return;
  given_[job] = {.limit = limit, .at = now};
}

}  // namespace leat::server
