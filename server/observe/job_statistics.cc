// SPDX-License-Identifier: Apache-2.0
#include "server/observe/job_statistics.h"

#include <algorithm>
#include <utility>

#include "server/observe/consumer_past.h"
#include "server/observe/counts.h"
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
// Each worker names few, and mostly the same.
constexpr size_t kMaxSlowSources = 8;
constexpr double kMostOfTheTime = 0.5;

double AsSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double GrownSeconds(uint64_t before, uint64_t after) {
  return static_cast<double>(Grown(before, after)) / 1e9;
}

}  // namespace

void JobStatistics::BeginWorker(std::string_view name) {
  MutexLock lock(&mu_);
  last_.erase(std::string(name));
}

void JobStatistics::Note(const std::string& worker,
                         const v1::WorkerStats& stats, MonotonicTime now) {
  Report told{.at = now, .totals = TotalsOf(stats), .jobs = {}};
  for (const v1::JobRows& job : stats.job_rows()) {
    if (told.jobs.size() == kMaxJobsOfAWorker) break;
    told.jobs.emplace(job.job(), job);
  }
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
  const WorkerStatistics did = Between(last->second.totals, told.totals);
  for (const auto& [name, job] : told.jobs)
    if (const auto before = last->second.jobs.find(name);
        before != last->second.jobs.end())
      Add(before->second, job, seconds, did, slot);
  last->second = std::move(told);
}

JobStatistics::Totals JobStatistics::TotalsOf(const v1::WorkerStats& stats) {
  Totals totals{.quota_periods = stats.quota_periods_total(),
                .quota_used_up = stats.quota_used_up_total()};
  const v1::StageStats& read = StageOf(stats.stages(), v1::STAGE_READ);
  const v1::StageStats& decode = StageOf(stats.stages(), v1::STAGE_DECODE);
  const v1::StageStats& device = StageOf(stats.stages(), v1::STAGE_DEVICE);
  const auto busy_ns = [&stats](v1::Stage stage) {
    return StageOf(stats.stages(), stage).busy_ns_total();
  };
  totals.threads = std::clamp<double>(decode.places(), 1.0, kMostPlaces);
  totals.threads_ns = decode.busy_ns_total() + busy_ns(v1::STAGE_AUGMENT);
  if (!ReadsAhead(read, decode))
    totals.threads_ns += read.busy_ns_total() + busy_ns(v1::STAGE_OPEN);
  totals.gpus = std::min<double>(device.places(), kMostPlaces);
  totals.gpus_ns = device.busy_ns_total();
  return totals;
}

WorkerStatistics JobStatistics::Between(const Totals& before,
                                        const Totals& now) {
  WorkerStatistics did;
  did.threads = now.threads;
  const double threads =
      GrownSeconds(before.threads_ns, now.threads_ns) / now.threads;
  if (now.gpus > 0 &&
      GrownSeconds(before.gpus_ns, now.gpus_ns) / now.gpus >= threads)
    did.of_gpus = 1;
  const uint64_t periods = Grown(before.quota_periods, now.quota_periods);
  if (periods > 0)
    did.quota_used_up = std::min(
        1.0,
        static_cast<double>(Grown(before.quota_used_up, now.quota_used_up)) /
            static_cast<double>(periods));
  return did;
}

void JobStatistics::AddSources(const v1::JobRows& before,
                               const v1::JobRows& now, SourceTimes* to) {
  to->all_ns += Grown(before.storage_ns_total(), now.storage_ns_total());
  std::map<uint32_t, uint64_t> from;
  for (const v1::SourceReads& each : before.slowest_sources())
    from.emplace(each.source(), each.storage_ns_total());
  for (const v1::SourceReads& each : now.slowest_sources()) {
    const auto earlier = from.find(each.source());
    if (earlier == from.end()) continue;
    if (to->ns.size() == kMaxSlowSources && !to->ns.contains(each.source()))
      continue;
    to->ns[each.source()] += Grown(earlier->second, each.storage_ns_total());
  }
}

void JobStatistics::Add(const v1::JobRows& before, const v1::JobRows& now,
                        double seconds, WorkerStatistics did, int64_t slot) {
  // Its streams ended meanwhile, and others began.
  if (now.rows_total() < before.rows_total()) return;
  const auto share = [seconds](uint64_t from, uint64_t to, double places) {
    return std::min(1.0, GrownSeconds(from, to) / places / seconds);
  };
  const double threads = did.threads;
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
  at->second.did.Add(slot, did);
  if (now.slowest_sources().empty()) return;
  AddSources(before, now, &at->second.sources[slot]);
}

void JobStatistics::Sweep(MonotonicTime now) {
  if (now < swept_at_ + kSweepEvery) return;
  swept_at_ = now;
  const int64_t oldest = History::SlotOf(now) - kKeepSlots;
  absl::erase_if(jobs_, [oldest](auto& job) {
    auto& [did, sources] = job.second;
    did.ForgetBefore(oldest);
    sources.erase(sources.begin(), sources.lower_bound(oldest));
    return did.empty();
  });
  absl::erase_if(last_, [now](const auto& each) {
    return each.second.at + kLookBack < now;
  });
  absl::erase_if(given_, [now](const auto& each) {
    return each.second.at + kGivenFor < now;
  });
}

std::optional<WorkerStatistics> JobStatistics::Mean(
    const std::string& job, const WaitsBySlot& waits,
    const NameSource& name_source) const {
  std::optional<WorkerStatistics> mean;
  std::optional<SlowSource> slow;
  {
    MutexLock lock(&mu_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return std::nullopt;
    mean = found->second.did.Mean(waits, {});
    slow = SlowSourceIn(found->second, waits);
  }
  if (!mean || !slow || !name_source) return mean;
  mean->slow_source = name_source(slow->number);
  mean->slow_source_share = slow->share;
  return mean;
}

std::optional<JobStatistics::SlowSource> JobStatistics::SlowSourceIn(
    const Judged& job, const WaitsBySlot& waits) {
  SourceTimes sum;
  for (const auto& [slot, times] : job.sources) {
    // Reports of workers and of the consumer arrive at different times.
    if (!waits.contains(slot) && !waits.contains(slot - 1)) continue;
    sum.all_ns += times.all_ns;
    for (const auto& [source, ns] : times.ns) sum.ns[source] += ns;
  }
  SlowSource most;
  for (const auto& [source, ns] : sum.ns) {
    const double share =
        static_cast<double>(ns) / static_cast<double>(std::max(sum.all_ns, ns));
    if (share > most.share) most = {.number = source, .share = share};
  }
  if (most.share <= kMostOfTheTime) return std::nullopt;
  return most;
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
