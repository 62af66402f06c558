// SPDX-License-Identifier: Apache-2.0
//
// Calls about jobs, datasets, listings and access tokens.
#include <algorithm>
#include <utility>

#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"

namespace leat::server {

uint64_t Coordinator::CreateJob(const JobSpec& spec, MonotonicTime deadline,
                                Now now, JobDone done, const JobCreator& by,
                                Relist relist, JobCreation::Tell tell) {
  absl::StatusOr<PreparedJob> prepared = Prepare(spec);
  if (!prepared.ok()) {
    done(prepared.status());
    return 0;
  }
  DeferredActions deferred;
  MutexLock lock(&mu_);
  Parts& parts = *parts_;
  const uint64_t id = parts.sessions.NewId();
  if (parts.shut_down || parts.datasets.waiting() >= config_.max_waiting_jobs) {
    deferred.Add([done = std::move(done), stopping = parts.shut_down] {
      done(stopping ? Stopping()
                    : ResourceExhausted("too many jobs wait to be created"));
    });
    return id;
  }
  parts.Seen(now, &deferred);
  if (parts.state.FindJob(spec.name) != nullptr) {
    parts.expiry.JobUsed(spec.name, now);
    deadline = std::min(deadline, now.mono + kAttachPatience);
  }
  parts.datasets.Create(id,
                        JobCreation(*std::move(prepared), by, relist, deadline,
                                    now, std::move(done), std::move(tell)),
                        now, &deferred);
  return id;
}

void Coordinator::CancelWait(uint64_t wait) {
  MutexLock lock(&mu_);
  parts_->datasets.CancelWait(wait);
}

absl::StatusOr<std::shared_ptr<const JobInfo>> Coordinator::GetJob(
    std::string_view name) const {
  MutexLock lock(&mu_);
  if (const JobRecord* job = parts_->state.FindJob(name)) return job->info;
  return NotFound("no job \"{}\"", name);
}

absl::StatusOr<std::shared_ptr<const JobInfo>> Coordinator::GetJob(
    const Digest& plan_hash) const {
  MutexLock lock(&mu_);
  if (const JobRecord* job = parts_->state.FindJob(plan_hash)) return job->info;
  return NotFound("no job with plan hash {}", ShortHex(plan_hash));
}

std::optional<Decoders> Coordinator::DecodersOf(const Digest& plan_hash) const {
  MutexLock lock(&mu_);
  return parts_->state.DecodersOf(plan_hash);
}

void Coordinator::DeleteJob(const std::string& name, Done done) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->datasets.DeleteJob(name, std::move(done), &deferred);
}

void Coordinator::DeleteDataset(const std::string& key, Done done) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->datasets.Delete(key, std::move(done), &deferred);
}

void Coordinator::RefreshDataset(const std::string& key, Now now, Done done) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  if (parts_->shut_down)
    return deferred.Add([done = std::move(done)] { done(Stopping()); });
  parts_->datasets.Refresh(key, now, std::move(done), &deferred);
}

void Coordinator::FinishUpload(const IndexHeader& header, Now now,
                               const Done& done) {
  absl::Status status;
  {
    MutexLock lock(&mu_);
    status = parts_->datasets.CheckUpload(header);
  }
  if (status.ok()) status = CheckArrived(header, now);
  if (!status.ok()) {
    RefuseUpload(header.dataset_id, header.request_id, status, now);
    return done(status);
  }
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->datasets.Listed(header, now, done, &deferred);
}

absl::Status Coordinator::FailIndex(const std::string& dataset_id,
                                    uint64_t request_id,
                                    const absl::Status& why, Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  return parts_->datasets.Fail(dataset_id, request_id, why, now, &deferred);
}

absl::Status Coordinator::NoteLooked(const DatasetLooked& looked, Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  return parts_->datasets.NoteLooked(looked, now, &deferred);
}

void Coordinator::RefuseUpload(const std::string& dataset_id,
                               uint64_t request_id, const absl::Status& why,
                               Now now) {
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->datasets.Refuse(dataset_id, request_id, why, now, &deferred);
}

void Coordinator::set_on_access(OnAccess on_access) {
  MutexLock lock(&mu_);
  parts_->tokens.set_told(std::move(on_access));
}

void Coordinator::CreateAccess(const AccessToken& token, Now now, Done done) {
  absl::Status fits = CheckTokenName(token.name);
  if (fits.ok() && token.ExpiredAt(now.wall))
    fits = InvalidArgument("access token \"{}\": it would have expired already",
                           token.name);
  if (!fits.ok()) return done(fits);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->tokens.Create(token, now, std::move(done), &deferred);
}

void Coordinator::RevokeAccess(const std::string& key, Now now, Done done) {
  if (absl::Status fits = CheckTokenName(key); !fits.ok()) return done(fits);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->tokens.Revoke(key, now, std::move(done), &deferred);
}

std::vector<AccessToken> Coordinator::Access() const {
  MutexLock lock(&mu_);
  std::vector<AccessToken> tokens;
  for (const auto& [id, token] : parts_->state.access())
    tokens.push_back(token);
  return tokens;
}

}  // namespace leat::server
