// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/expiry.h"

#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/status.h"

namespace leat::server {
namespace {

// How long a listing that was replaced by a newer one is kept.
constexpr Duration kReplacedIsKept = std::chrono::hours(1);
constexpr Duration kFirstExpiry = std::chrono::hours(1);
constexpr Duration kExpireEvery = std::chrono::hours(1);
constexpr Duration kStoreUseEvery = std::chrono::hours(24);
// Any further ones wait for the next sweep, which is soon.
constexpr size_t kExpiriesAtOnce = 256;
constexpr Duration kSoon = std::chrono::seconds(1);

}  // namespace

// Stores which jobs are in use. A failed transaction is retried later.
class Expiry::UsedTransaction final : public Transaction {
 public:
  explicit UsedTransaction(std::vector<std::string> jobs)
      : jobs_(std::move(jobs)) {}
  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    return Event{{}, JobsUsed{jobs_}, {}};
  }
  void Applied(DeferredActions*) override {}
  void Failed(const absl::Status&, DeferredActions*) override {}

 private:
  const std::vector<std::string> jobs_;
};

// Deletes a job, unless it was used after `used`.
class Expiry::JobTransaction final : public Transaction {
 public:
  JobTransaction(Expiry* expiry, const std::string& name, MonotonicTime used)
      : expiry_(expiry), name_(name), used_(used) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    const State& state = *expiry_->uses_.state;
    const JobRecord* job = state.FindJob(name_);
    const auto last = expiry_->used_at_.find(name_);
    if (job == nullptr || expiry_->InUse(*job->info) ||
        last == expiry_->used_at_.end() || last->second != used_)
      return std::nullopt;
    gone_ = {job->info, KeysOf(state, *job->info)};
    return Event{{}, JobDeleted{name_}, {}};
  }
  void Applied(DeferredActions* deferred) override {
    if (gone_.info == nullptr) return;
    const auto hours =
        std::chrono::duration_cast<std::chrono::hours>(expiry_->ttl_).count();
    expiry_->uses_.announcer->Tell(
        {"job.expired",
         "info",
         {"job/" + name_},
         fmt::format("job {} was deleted: it was not used for {}", name_,
                     Counted(hours, "hour")),
         fmt::format("unused_for_h={}", hours)},
        deferred);
    expiry_->JobGone(gone_, deferred);
    // The datasets have been unused for as long as the job.
    for (const DatasetInfo& dataset : gone_.info->datasets)
      if (!expiry_->uses_.state->HasJobs(dataset.id))
        expiry_->unused_since_.try_emplace(dataset.id, used_);
    expiry_->sweep_at_ = MonotonicTime::min();
    deferred->Add(expiry_->wake_);
  }
  void Failed(const absl::Status&, DeferredActions*) override {}

 private:
  Expiry* const expiry_;
  const std::string name_;
  const MonotonicTime used_;
  GoneJob gone_;
};

class Expiry::DatasetTransaction final : public Transaction {
 public:
  DatasetTransaction(Expiry* expiry, const std::string& id)
      : expiry_(expiry), id_(id) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    const State& state = *expiry_->uses_.state;
    Event event{{}, DatasetDeleted{id_}, {}};
    if (expiry_->uses_.tables->assignments().Uses(id_) ||
        !expiry_->unused_since_.contains(id_) || !state.Check(event).ok())
      return std::nullopt;
    name_ = state.NameOf(id_);
    return event;
  }
  void Applied(DeferredActions* deferred) override {
    if (name_.empty()) return;
    expiry_->uses_.announcer->Tell(
        {"dataset.expired",
         "info",
         {"dataset/" + name_},
         fmt::format("dataset {} was deleted with its index: no job used it",
                     name_)},
        deferred);
    expiry_->DatasetGone(id_);
  }
  void Failed(const absl::Status&, DeferredActions*) override {}

 private:
  Expiry* const expiry_;
  const std::string id_;
  std::string name_;
};

void Expiry::Start(Now now) { started_at_ = sweep_at_ = now.mono; }

void Expiry::Tick(Now now, DeferredActions* deferred) {
  if (ttl_ <= Duration(0) || now.mono < sweep_at_) return;
  const bool all_jobs = SweepJobs(now, deferred);
  const bool all = SweepDatasets(now, deferred) && all_jobs;
  const Duration every = std::max(kSoon, std::min(kExpireEvery, ttl_ / 24));
  sweep_at_ = now.mono + (all ? every : kSoon);
}

MonotonicTime Expiry::NextDeadline() const {
  return ttl_ > Duration(0) ? sweep_at_ : MonotonicTime::max();
}

// Returns false if there is more to do.
bool Expiry::SweepJobs(Now now, DeferredActions* deferred) {
  const bool may_expire =
      now.mono >= started_at_ + std::min(kFirstExpiry, ttl_);
  const Duration store_every = std::min(kStoreUseEvery, ttl_ / 4);
  std::vector<std::string> used;
  size_t expired = 0;
  for (const auto& [name, job] : uses_.state->jobs()) {
    const Duration before = std::max<Duration>(
        Duration(0), now.wall - std::max(job.last_used_at, job.created_at));
    MonotonicTime& used_at =
        used_at_.try_emplace(name, now.mono - before).first->second;
    if (InUse(*job.info)) used_at = now.mono;
    const Duration idle = now.mono - used_at;
    if (idle >= ttl_) {
      if (may_expire && expired++ < kExpiriesAtOnce)
        uses_.transactions->Enqueue(
            std::make_unique<JobTransaction>(this, name, used_at), deferred);
    } else if (before >= idle + store_every) {
      used.push_back(name);
    }
  }
  if (!used.empty())
    uses_.transactions->Enqueue(
        std::make_unique<UsedTransaction>(std::move(used)), deferred);
  return expired <= kExpiriesAtOnce;
}

bool Expiry::SweepDatasets(Now now, DeferredActions* deferred) {
  size_t expired = 0;
  for (const auto& [id, dataset] : uses_.state->datasets()) {
    if (uses_.state->HasJobs(id) || uses_.tables->assignments().Uses(id)) {
      DatasetUsed(id);
      continue;
    }
    const MonotonicTime since =
        unused_since_.try_emplace(id, now.mono).first->second;
    const Duration ttl = uses_.state->IsCurrent(dataset)
                             ? ttl_
                             : std::min<Duration>(ttl_, kReplacedIsKept);
    if (now.mono - since < ttl) continue;
    if (expired++ < kExpiriesAtOnce)
      uses_.transactions->Enqueue(
          std::make_unique<DatasetTransaction>(this, id), deferred);
  }
  return expired <= kExpiriesAtOnce;
}

void Expiry::JobGone(const GoneJob& job, DeferredActions* deferred) {
  uses_.bad_samples->ForgetJob(job.info->spec.name);
  if (uses_.state->FindJob(job.info->plan_hash) == nullptr)
    uses_.bad_samples->ForgetPlan(job.info->plan_hash);
  used_at_.erase(job.info->spec.name);
  uses_.positions->erase(job.info->spec.name);
  uses_.tables->Release(job.keys, deferred);
}

void Expiry::DatasetGone(const std::string& id) {
  unused_since_.erase(id);
  uses_.looks->erase(id);
  uses_.damaged->Forget(id);
}

}  // namespace leat::server
