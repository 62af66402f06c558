// SPDX-License-Identifier: Apache-2.0
//
// Datasets as operators see them: listed again, deleted.
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {

// Only its jobs know the reader of a dataset as more than text.
void Coordinator::RefreshDataset(const std::string& key, Now now, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  const auto fail = [&](const absl::Status& why) {
    effects.Add([done, why] { done(why); });
  };
  if (shut_down_) return fail(Unavailable("the coordinator is stopping"));
  if (refreshes_.size() >= config_.max_waiting_jobs)
    return fail(
        ResourceExhausted("too many wait for datasets to be listed again"));
  const absl::StatusOr<const DatasetRecord*> dataset =
      state_.ResolveDataset(key);
  if (!dataset.ok()) return fail(dataset.status());
  const JobRecord* job = nullptr;
  for (const std::string& name : state_.JobsOf((*dataset)->info->id))
    if (job == nullptr) job = state_.FindJob(name);
  if (job == nullptr)
    return fail(FailedPrecondition(
        "no job uses dataset {}: the next one looks at it by itself",
        (*dataset)->info->name));
  const absl::StatusOr<PreparedJob> prepared =
      Prepare(job->info->spec, (*dataset)->info->types);
  if (!prepared.ok()) return fail(prepared.status());
  refreshes_.Add(prepared->reader_id, next_id_++, std::move(done));
  AskToRefresh(prepared->reader_id, prepared->reader, prepared->reader_text,
               now, &effects);
}

void Coordinator::AskToRefresh(const std::string& reader_id, const Node& reader,
                               const std::string& reader_text, Now now,
                               Effects* effects) {
  if (const absl::Status asked =
          indexing_.Ask(reader_id, reader, reader_text, {}, now);
      !asked.ok()) {
    for (auto& done : refreshes_.Take(reader_id))
      effects->Add([done = std::move(done), asked] { done(asked); });
    return;
  }
  AssignListings(now, effects);
  effects->Add(wake_);
}

void Coordinator::DeleteDataset(const std::string& key, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  const auto gone = std::make_shared<std::string>();
  const auto name = std::make_shared<std::string>(key);
  Write write;
  write.decide = [this, key, name,
                  gone](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    const absl::StatusOr<const DatasetRecord*> dataset =
        state_.ResolveDataset(key);
    if (absl::IsNotFound(dataset.status()) && indexing_.Forget(key))
      return std::nullopt;
    RETURN_IF_ERROR(dataset.status());
    *gone = (*dataset)->info->id;
    *name = (*dataset)->info->name;
    Event event{{}, DatasetDeleted{*gone}, {}};
    RETURN_IF_ERROR(state_.Check(event));
    return event;
  };
  write.finish = [this, key, gone, name, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([key] { LOG_INFO("dataset.deleted dataset={}", key); });
      Happened("dataset.deleted", "info", {"dataset/" + *name},
               fmt::format("dataset {} was deleted", *name), inner);
      unused_since_.erase(*gone);
      looks_.erase(*gone);
      damaged_.Forget(*gone);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

}  // namespace leat::server
