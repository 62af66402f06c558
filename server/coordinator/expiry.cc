// SPDX-License-Identifier: Apache-2.0
//
// What nobody uses any more: jobs without a consumer, datasets without a job.
//
// Idle time is counted by the monotonic clock. Only what happened before this
// process started is taken from the store, in wall time: a clock that jumps
// later deletes nothing, and one that is wrong at the start can be seen and set
// right for kFirstExpiry.
//
// A job's last use is stored at most once a day, as one event for all jobs in
// use. So a job may be kept for a day longer than its time, never shorter.
//
// With a time of 30 days, in hours since the start:
//
//   0    Maintain: job j was last used 29 days ago by the store's wall time
//   1    the first hour is over: jobs may be deleted from here on
//   24   j is idle for 30 days: ExpireJob, and its dataset's time begins with
//        j's last use, so it goes in the same sweep if j was its last job
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// A listing that another one of the same reader took the place of.
constexpr Duration kReplacedIsKept = std::chrono::hours(1);
constexpr Duration kFirstExpiry = std::chrono::hours(1);
constexpr Duration kMaintainEvery = std::chrono::hours(1);
constexpr Duration kStoreUseEvery = std::chrono::hours(24);
// More wait for the next time, which is soon.
constexpr size_t kExpiriesAtOnce = 256;
constexpr Duration kSoon = std::chrono::seconds(1);

}  // namespace

bool Coordinator::InUse(const JobInfo& job) const {
  return consumers_.UsesPlan(job.plan_hash);
}

void Coordinator::Maintain(Now now, Effects* effects) {
  if (config_.job_ttl <= Duration(0) || now.mono < maintain_at_) return;
  const bool all_jobs = MaintainJobs(now, effects);
  const bool all = MaintainDatasets(now, effects) && all_jobs;
  const Duration every =
      std::max(kSoon, std::min(kMaintainEvery, config_.job_ttl / 24));
  maintain_at_ = now.mono + (all ? every : kSoon);
}

// False: there is more to do.
bool Coordinator::MaintainJobs(Now now, Effects* effects) {
  const bool may_expire =
      now.mono >= *started_at_ + std::min(kFirstExpiry, config_.job_ttl);
  const Duration store_every = std::min(kStoreUseEvery, config_.job_ttl / 4);
  std::vector<std::string> used;
  size_t expired = 0;
  for (const auto& [name, job] : state_.jobs()) {
    const Duration before = std::max<Duration>(
        Duration(0), now.wall - std::max(job.last_used_at, job.created_at));
    MonotonicTime& used_at =
        used_at_.try_emplace(name, now.mono - before).first->second;
    if (InUse(*job.info)) used_at = now.mono;
    const Duration idle = now.mono - used_at;
    if (idle >= config_.job_ttl) {
      if (may_expire && expired++ < kExpiriesAtOnce)
        ExpireJob(name, used_at, effects);
    } else if (before >= idle + store_every) {
      used.push_back(name);
    }
  }
  if (!used.empty()) NoteUsed(std::move(used), effects);
  return expired <= kExpiriesAtOnce;
}

bool Coordinator::MaintainDatasets(Now now, Effects* effects) {
  size_t expired = 0;
  for (const auto& [id, dataset] : state_.datasets()) {
    if (state_.HasJobs(id) || assignments_.Uses(id)) {
      unused_since_.erase(id);
      continue;
    }
    const MonotonicTime since =
        unused_since_.try_emplace(id, now.mono).first->second;
    const Duration ttl =
        state_.IsCurrent(dataset)
            ? config_.job_ttl
            : std::min<Duration>(config_.job_ttl, kReplacedIsKept);
    if (now.mono - since < ttl) continue;
    if (expired++ < kExpiriesAtOnce) ExpireDataset(id, effects);
  }
  return expired <= kExpiriesAtOnce;
}

void Coordinator::NoteUsed(std::vector<std::string> jobs, Effects* effects) {
  Write write;
  write.decide = [jobs = std::move(jobs)](
                     Effects*) -> absl::StatusOr<std::optional<Event>> {
    return Event{{}, JobsUsed{jobs}, {}};
  };
  write.finish = [](const absl::Status&, Effects*) {};  // tried again later
  Enqueue(std::move(write), effects);
}

void Coordinator::ExpireJob(const std::string& name, MonotonicTime used,
                            Effects* effects) {
  const auto gone = std::make_shared<GoneJob>();
  Write write;
  write.decide = [this, name, used,
                  gone](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    const JobRecord* job = state_.FindJob(name);
    const auto last = used_at_.find(name);
    if (job == nullptr || InUse(*job->info) || last == used_at_.end() ||
        last->second != used)
      return std::nullopt;
    *gone = {job->info, KeyOf(*job->info)};
    return Event{{}, JobDeleted{name}, {}};
  };
  write.finish = [this, name, used, gone](const absl::Status& status,
                                          Effects* inner) {
    mu_.AssertHeld();
    if (!status.ok() || gone->info == nullptr) return;
    inner->Add([name, ttl = config_.job_ttl] {
      LOG_INFO("job.expired job={} unused_for_h={}", name,
               std::chrono::duration_cast<std::chrono::hours>(ttl).count());
    });
    Happened("job.expired", "info", {"job/" + name},
             fmt::format(
                 "job {} was deleted: nobody used it for {} hours", name,
                 std::chrono::duration_cast<std::chrono::hours>(config_.job_ttl)
                     .count()),
             inner);
    JobGone(*gone->info, gone->key, inner);
    // The dataset has been unused for as long.
    const std::string& dataset = gone->info->dataset.id;
    if (!state_.HasJobs(dataset)) unused_since_.try_emplace(dataset, used);
    maintain_at_ = MonotonicTime::min();
    inner->Add(wake_);
  };
  Enqueue(std::move(write), effects);
}

void Coordinator::ExpireDataset(const std::string& id, Effects* effects) {
  const auto gone = std::make_shared<std::string>();  // its name
  Write write;
  write.decide = [this, id,
                  gone](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    Event event{{}, DatasetDeleted{id}, {}};
    if (assignments_.Uses(id) || !unused_since_.contains(id) ||
        !state_.Check(event).ok())
      return std::nullopt;
    *gone = DatasetName(id);
    return event;
  };
  write.finish = [this, id, gone](const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (!status.ok() || gone->empty()) return;
    inner->Add(
        [id] { LOG_INFO("dataset.expired dataset={}", id.substr(0, 12)); });
    Happened("dataset.expired", "info", {"dataset/" + *gone},
             fmt::format("dataset {} was deleted with its index: no job used "
                         "it",
                         *gone),
             inner);
    unused_since_.erase(id);
    looks_.erase(id);
  };
  Enqueue(std::move(write), effects);
}

}  // namespace leat::server
