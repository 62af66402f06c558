// SPDX-License-Identifier: Apache-2.0
//
// Jobs: created, found, deleted.
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator.h"
#include "server/coordinator_internal.h"

namespace leat::server {

uint64_t Coordinator::CreateJob(const JobSpec& spec, MonotonicTime deadline,
                                Now now, JobDone done) {
  absl::StatusOr<PreparedJob> prepared = Prepare(spec);
  if (!prepared.ok()) {
    done(prepared.status());
    return 0;
  }
  Effects effects;
  MutexLock lock(&mu_);
  const uint64_t id = next_id_++;
  if (shut_down_ || waits_.size() >= config_.max_waiting_jobs) {
    effects.Add([done = std::move(done), stopping = shut_down_] {
      done(stopping ? Unavailable("the coordinator is stopping")
                    : ResourceExhausted("too many jobs wait to be created"));
    });
    return id;
  }
  NoteStart(now);
  Wait& wait = waits_[id];
  wait.job = std::make_shared<PreparedJob>(*std::move(prepared));
  wait.deadline = deadline;
  wait.started = now.mono;
  wait.done = std::move(done);
  wait_deadlines_.emplace(deadline, id);
  const PreparedJob& job = *wait.job;
  if (const JobRecord* existing = state_.FindJob(job.spec.name)) {
    used_at_[job.spec.name] = now.mono;
    FinishWait(id, Attach(*existing, job), &effects);
    return id;
  }
  if (absl::Status status = SettleClass(job).status(); !status.ok()) {
    FinishWait(id, status, &effects);
    return id;
  }
  if (state_.FindDataset(job.dataset_id) != nullptr) {
    StartCreate(id, &effects);
    return id;
  }
  if (absl::Status asked =
          indexing_.Ask(job.dataset_id, job.reader, job.reader_text, now);
      !asked.ok()) {
    FinishWait(id, asked, &effects);
    return id;
  }
  AssignListings(now, &effects);
  effects.Add(wake_);
  return id;
}

void Coordinator::CancelWait(uint64_t wait) {
  MutexLock lock(&mu_);
  const auto it = waits_.find(wait);
  if (it == waits_.end()) return;
  const std::string dataset_id = it->second.job->dataset_id;
  wait_deadlines_.erase({it->second.deadline, wait});
  waits_.erase(it);
  DropUnwanted(dataset_id);
}

void Coordinator::FinishWait(uint64_t wait, absl::StatusOr<CreatedJob> result,
                             Effects* effects) {
  const auto it = waits_.find(wait);
  if (it == waits_.end()) return;  // cancelled, or told already
  effects->Add(
      [done = std::move(it->second.done),
       result = std::move(result)]() mutable { done(std::move(result)); });
  wait_deadlines_.erase({it->second.deadline, wait});
  waits_.erase(it);
}

absl::StatusOr<CreatedJob> Coordinator::Attach(
    const JobRecord& existing, const PreparedJob& wanted) const {
  ASSIGN_OR_RETURN(const PreparedJob job,
                   Complete(wanted, existing.info->dataset));
  const std::string difference = Difference(existing.info->spec, job.spec);
  if (!difference.empty())
    return AlreadyExists(
        "job {} exists with another spec: {}; use another name, or delete it",
        job.spec.name, difference);
  return CreatedJob{existing.info, /*attached=*/true};
}

// The class that a new job of this spec has. Without any worker nobody knows
// what will come: what was asked for is believed.
absl::StatusOr<DecoderClass> Coordinator::SettleClass(
    const PreparedJob& job) const {
  const JobSpec& spec = job.spec;
  const size_t ready = membership_.num_ready();
  const size_t gpus = membership_.num_ready(DecoderClass::kNvjpeg);
  if (spec.decoder_class == DecoderClass::kAuto)
    return job.may_be_nvjpeg && ready > 0 && gpus == ready
               ? DecoderClass::kNvjpeg
               : DecoderClass::kExact;
  if (ready > 0 && membership_.num_ready(spec.decoder_class) == 0)
    return FailedPrecondition(
        "job {} wants decoder class {}, which none of {} ready worker{} has: "
        "start a leat-worker on a machine with {}, or ask for class auto",
        spec.name, Name(spec.decoder_class), ready, ready == 1 ? "" : "s",
        spec.decoder_class == DecoderClass::kNvjpeg ? "an NVIDIA GPU and nvJPEG"
                                                    : "it");
  return spec.decoder_class;
}

// The dataset is there: make the job durable.
void Coordinator::StartCreate(uint64_t wait_id, Effects* effects) {
  const auto it = waits_.find(wait_id);
  if (it == waits_.end()) return;
  it->second.writing = true;
  wait_deadlines_.erase({it->second.deadline, wait_id});
  std::shared_ptr<const PreparedJob> job = it->second.job;
  // Whether DecideCreate had something to append.
  const auto decided = std::make_shared<bool>(false);
  Write write;
  write.decide = [this, wait_id, job, decided](
                     Effects* inner) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    absl::StatusOr<std::optional<Event>> event =
        DecideCreate(*job, wait_id, inner);
    *decided = event.ok() && event->has_value();
    return event;
  };
  write.finish = [this, wait_id, job, decided](const absl::Status& status,
                                               Effects* inner) {
    mu_.AssertHeld();
    if (!status.ok()) return FinishWait(wait_id, status, inner);
    if (*decided) FinishCreate(wait_id, job->spec.name, inner);
  };
  Enqueue(std::move(write), effects);
}

void Coordinator::FinishCreate(uint64_t wait_id, const std::string& name,
                               Effects* effects) {
  const std::shared_ptr<const JobInfo> info = state_.FindJob(name)->info;
  UseTable(*info, effects);
  unused_since_.erase(info->dataset.id);
  effects->Add([info] {
    LOG_INFO("job.created job={} plan={} decoder={} samples={}",
             info->spec.name, ShortHex(info->plan_hash),
             Name(info->spec.decoder_class),
             info->dataset.shards.num_samples());
  });
  FinishWait(wait_id, CreatedJob{info, /*attached=*/false}, effects);
}

absl::StatusOr<std::optional<Event>> Coordinator::DecideCreate(
    const PreparedJob& wanted, uint64_t wait, Effects* effects) {
  if (!waits_.contains(wait)) return std::nullopt;  // nobody wants it any more
  if (const JobRecord* existing = state_.FindJob(wanted.spec.name)) {
    FinishWait(wait, Attach(*existing, wanted), effects);
    return std::nullopt;
  }
  if (state_.jobs().size() >= config_.max_jobs)
    return ResourceExhausted("{} jobs exist, the limit: delete some",
                             state_.jobs().size());
  const DatasetRecord* dataset = state_.FindDataset(wanted.dataset_id);
  if (dataset == nullptr)
    return Aborted("the dataset of job {} was deleted meanwhile; try again",
                   wanted.spec.name);
  ASSIGN_OR_RETURN(const PreparedJob job, Complete(wanted, *dataset->info));
  JobSpec spec = job.spec;
  ASSIGN_OR_RETURN(spec.decoder_class, SettleClass(job));
  RETURN_IF_ERROR(CheckAgainst(spec, *dataset->info));
  const Digest plan_hash = PlanHash(spec, *dataset->info);
  return Event{{},
               JobCreated{std::move(spec), job.dataset_id, job.schema,
                          plan_hash, job.not_on_gpu},
               {}};
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
  const auto gone = std::make_shared<std::shared_ptr<const JobInfo>>();
  Write write;
  write.decide = [this, name,
                  gone](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    Event event{{}, JobDeleted{name}, {}};
    if (!state_.Check(event).ok()) return NotFound("no job \"{}\"", name);
    if (const JobRecord* job = state_.FindJob(name)) *gone = job->info;
    return event;
  };
  write.finish = [this, name, gone, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([name] { LOG_INFO("job.deleted job={}", name); });
      if (*gone != nullptr) JobGone(**gone, inner);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

void Coordinator::JobGone(const JobInfo& job, Effects* effects) {
  bad_samples_.erase(job.spec.name);
  used_at_.erase(job.spec.name);
  ReleaseTable({job.dataset.id, job.spec.decoder_class}, effects);
}

}  // namespace leat::server
