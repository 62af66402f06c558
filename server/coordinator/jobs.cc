// SPDX-License-Identifier: Apache-2.0
//
// Jobs: created (each call is a JobCreation), found, deleted.
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
uint64_t Coordinator::CreateJob(const JobSpec& spec, MonotonicTime deadline,
                                Now now, JobDone done, const JobCreator& by,
                                Relist relist) {
  absl::StatusOr<PreparedJob> prepared = Prepare(spec);
  if (!prepared.ok()) {
    done(prepared.status());
    return 0;
  }
  Effects effects;
  MutexLock lock(&mu_);
  const uint64_t id = next_id_++;
  if (shut_down_ || creations_.size() >= config_.max_waiting_jobs) {
    effects.Add([done = std::move(done), stopping = shut_down_] {
      done(stopping ? Unavailable("the coordinator is stopping")
                    : ResourceExhausted("too many jobs wait to be created"));
    });
    return id;
  }
  NoteStart(now);
  if (state_.FindJob(spec.name) != nullptr) {
    used_at_[spec.name] = now.mono;
    deadline = std::min(deadline, now.mono + kAttachPatience);
  }
  creations_.Add(id, JobCreation(*std::move(prepared), by, relist, deadline,
                                 now, std::move(done)));
  BeginJob(id, now, &effects);
  return id;
}

// The first step, also of one whose dataset was listed too early for it.
void Coordinator::BeginJob(uint64_t id, Now now, Effects* effects) {
  JobCreation& creation = *creations_.Find(id);
  const PreparedJob& job = creation.job();
  if (std::optional<JobCreation::Answer> answer =
          creation.Begin(state_, membership_))
    return Answer(id, *std::move(answer), effects);
  if (creation.phase() == JobCreation::Phase::kWriting)
    return WriteJob(id, effects);
  if (absl::Status asked =
          indexing_.Ask(job.reader_id, job.reader, job.reader_text,
                        creation.Wanted(state_), now);
      !asked.ok())
    return Answer(id, asked, effects);
  AssignListings(now, effects);
  effects->Add(wake_);
}

void Coordinator::CancelWait(uint64_t wait) {
  MutexLock lock(&mu_);
  if (const std::optional<JobCreation> creation = creations_.Take(wait))
    DropUnwanted(creation->job().reader_id);
}

// Nothing, if it was cancelled or answered already.
void Coordinator::Answer(uint64_t creation, JobCreation::Answer answer,
                         Effects* effects) {
  std::optional<JobCreation> taken = creations_.Take(creation);
  if (!taken) return;
  if (answer.ok())
    answer->consumers = consumers_.OfJob(answer->info->spec.name).size();
  effects->Add(
      [done = taken->TakeDone(), answer = std::move(answer)]() mutable {
        done(std::move(answer));
      });
}

// The dataset is there: make the job durable.
void Coordinator::WriteJob(uint64_t id, Effects* effects) {
  if (!creations_.StartWriting(id)) return;
  // What was appended, for `finish`; empty: nothing.
  const auto written = std::make_shared<std::string>();
  Write write;
  write.decide = [this, id, written](
                     Effects* inner) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    const JobCreation* const creation = creations_.Find(id);
    if (creation == nullptr) return std::nullopt;  // nobody wants it any more
    JobCreation::Decision decision =
        creation->Decide(state_, membership_, config_.jobs);
    if (decision.answer) {
      Answer(id, *std::move(decision.answer), inner);
      return std::nullopt;
    }
    *written = creation->job().spec.name;
    return std::move(decision.event);
  };
  write.finish = [this, id, written](const absl::Status& status,
                                     Effects* inner) {
    mu_.AssertHeld();
    if (!status.ok()) return Answer(id, status, inner);
    if (!written->empty()) JobWritten(id, *written, inner);
  };
  Enqueue(std::move(write), effects);
}

void Coordinator::JobWritten(uint64_t creation, const std::string& name,
                             Effects* effects) {
  const std::shared_ptr<const JobInfo> info = state_.FindJob(name)->info;
  UseTable(*info, effects);
  if (!state_.DecodersOf(info->plan_hash)) SettleSoon(effects);
  unused_since_.erase(info->dataset.id);
  effects->Add([info] {
    LOG_INFO("job.created job={} plan={} decoder={} samples={}",
             info->spec.name, ShortHex(info->plan_hash),
             Name(info->spec.decoder_class),
             info->dataset.shards.num_samples());
  });
  Happened("job.created", "info",
           {"job/" + info->spec.name, "dataset/" + info->dataset.name},
           fmt::format("job {} was created, of {} samples of dataset {}",
                       info->spec.name, info->dataset.shards.num_samples(),
                       info->dataset.name),
           effects);
  Answer(creation, CreatedJob{info, /*attached=*/false}, effects);
}

absl::StatusOr<std::shared_ptr<const JobInfo>> Coordinator::GetJob(
    std::string_view name) const {
  MutexLock lock(&mu_);
  if (const JobRecord* job = state_.FindJob(name)) return job->info;
  return NotFound("no job \"{}\"", name);
}

absl::StatusOr<std::shared_ptr<const JobInfo>> Coordinator::GetJob(
    const Digest& plan_hash) const {
  MutexLock lock(&mu_);
  if (const JobRecord* job = state_.FindJob(plan_hash)) return job->info;
  return NotFound("no job with plan hash {}", ShortHex(plan_hash));
}

void Coordinator::DeleteJob(const std::string& name, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  // What it was; nullptr: one that was set aside.
  const auto gone = std::make_shared<GoneJob>();
  Write write;
  write.decide = [this, name,
                  gone](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    Event event{{}, JobDeleted{name}, {}};
    if (!state_.Check(event).ok()) return NotFound("no job \"{}\"", name);
    if (const JobRecord* job = state_.FindJob(name))
      *gone = {job->info, KeyOf(*job->info)};
    return event;
  };
  write.finish = [this, name, gone, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([name] { LOG_INFO("job.deleted job={}", name); });
      Happened("job.deleted", "info", {"job/" + name},
               fmt::format("job {} was deleted", name), inner);
      if (gone->info != nullptr) JobGone(*gone->info, gone->key, inner);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

void Coordinator::JobGone(const JobInfo& job, const TableKey& key,
                          Effects* effects) {
  bad_samples_.ForgetJob(job.spec.name);
  if (state_.FindJob(job.plan_hash) == nullptr)
    bad_samples_.ForgetPlan(job.plan_hash);
  used_at_.erase(job.spec.name);
  ReleaseTable(key, effects);
}

}  // namespace leat::server
