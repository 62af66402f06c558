// SPDX-License-Identifier: Apache-2.0
//
// Jobs, datasets and their indexes.
#include <algorithm>
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
  Wait& wait = waits_[id];
  wait.job = std::make_shared<PreparedJob>(*std::move(prepared));
  wait.deadline = deadline;
  wait.started = now.mono;
  wait.done = std::move(done);
  const PreparedJob& job = *wait.job;
  if (const JobRecord* existing = state_.FindJob(job.spec.name)) {
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
  waits_.erase(wait);
}

void Coordinator::FinishWait(uint64_t wait, absl::StatusOr<CreatedJob> result,
                             Effects* effects) {
  const auto it = waits_.find(wait);
  if (it == waits_.end()) return;  // cancelled, or told already
  effects->Add(
      [done = std::move(it->second.done),
       result = std::move(result)]() mutable { done(std::move(result)); });
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
    return job.not_on_gpu.empty() && ready > 0 && gpus == ready
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
  std::shared_ptr<const PreparedJob> job = it->second.job;
  Write write;
  write.decide = [this, wait_id, job](Effects* inner) {
    mu_.AssertHeld();
    return DecideCreate(*job, wait_id, inner);
  };
  write.finish = [this, wait_id, job](const absl::Status& status,
                                      Effects* inner) {
    mu_.AssertHeld();
    if (!status.ok()) return FinishWait(wait_id, status, inner);
    const JobRecord* created = state_.FindJob(job->spec.name);
    if (created == nullptr) return;  // DecideCreate has answered
    AddTable(*created->info);
    const TableKey key{created->info->dataset.id,
                       created->info->spec.decoder_class};
    if (assignments_.Update(key, membership_)) Announce(key, inner);
    if (waits_.contains(wait_id))
      LOG_INFO("job.created job={} plan={} decoder={} samples={}",
               job->spec.name, ShortHex(created->info->plan_hash),
               Name(created->info->spec.decoder_class),
               created->info->dataset.shards.num_samples());
    FinishWait(wait_id, CreatedJob{created->info, /*attached=*/false}, inner);
  };
  Enqueue(std::move(write), effects);
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
  ASSIGN_OR_RETURN(const PreparedJob job, Complete(wanted, dataset->info));
  JobSpec spec = job.spec;
  ASSIGN_OR_RETURN(spec.decoder_class, SettleClass(job));
  RETURN_IF_ERROR(CheckAgainst(spec, dataset->info));
  const Digest plan_hash = PlanHash(spec, dataset->info);
  return Event{{},
               JobCreated{std::move(spec), job.dataset_id, job.schema,
                          plan_hash, job.not_on_gpu}};
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
  Write write;
  write.decide = [this,
                  name](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    if (state_.FindJob(name) == nullptr) return NotFound("no job \"{}\"", name);
    return Event{{}, JobDeleted{name}};
  };
  write.finish = [this, name, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      LOG_INFO("job.deleted job={}", name);
      bad_samples_.erase(name);
      RemoveUnusedTables();
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

void Coordinator::DeleteDataset(const std::string& key, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  Write write;
  write.decide = [this, key](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(const DatasetRecord* dataset, state_.ResolveDataset(key));
    const Event event{{}, DatasetDeleted{dataset->info.id}};
    // Tried on a copy: the store must not be told what cannot be applied.
    State trial = state_;
    RETURN_IF_ERROR(trial.Apply(event));
    return event;
  };
  write.finish = [this, key, done = std::move(done)](const absl::Status& status,
                                                     Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      LOG_INFO("dataset.deleted dataset={}", key);
      RemoveUnusedTables();
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

absl::StatusOr<std::string> Coordinator::ReadIndex(std::string_view dataset_id,
                                                   uint64_t chunk) {
  return store_->ReadIndex(dataset_id, chunk);
}

absl::Status Coordinator::CheckUpload(const IndexHeader& header) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(
      indexing_.Current(header.dataset_id, header.request_id).status());
  if (header.index_bytes > config_.max_index_bytes)
    return ResourceExhausted(
        "an index of {} bytes is over the limit of {} bytes",
        header.index_bytes, config_.max_index_bytes);
  if (header.shards.num_samples() == 0)
    return InvalidArgument("an index without samples");
  return absl::OkStatus();
}

void Coordinator::FinishUpload(const IndexHeader& header, std::string index,
                               Done done) {
  absl::Status status = CheckUpload(header);
  if (status.ok() && (index.size() != header.index_bytes ||
                      HashOf(index) != header.index_sha256))
    status = DataLoss(
        "the index of dataset {} arrived damaged: {} bytes of {}, or another "
        "hash",
        header.dataset_id, index.size(), header.index_bytes);
  if (!status.ok()) return done(status);

  Effects effects;
  MutexLock lock(&mu_);
  if (Indexing::Request* request = indexing_.Find(header.dataset_id))
    request->uploaded = true;
  Write write;
  write.index = std::move(index);
  write.decide = [this,
                  header](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(Indexing::Request * request,
                     indexing_.Current(header.dataset_id, header.request_id));
    DatasetIndexed indexed;
    indexed.dataset = {header.dataset_id,  header.name,   request->reader_text,
                       header.fingerprint, header.shards, header.bytes,
                       header.classes,     header.types};
    indexed.index_bytes = header.index_bytes;
    indexed.index_sha256 = header.index_sha256;
    return Event{{}, std::move(indexed)};
  };
  write.finish = [this, header, done = std::move(done)](
                     const absl::Status& result, Effects* inner) {
    mu_.AssertHeld();
    LOG_INFO("dataset.indexed dataset={} name={} samples={} status={}",
             header.dataset_id.substr(0, 12), header.name,
             header.shards.num_samples(), result.ToString());
    FinishIndexing(header.dataset_id, result, inner);
    inner->Add([done, result] { done(result); });
  };
  Enqueue(std::move(write), &effects);
}

absl::Status Coordinator::FailIndex(const std::string& dataset_id,
                                    uint64_t request_id,
                                    const absl::Status& why, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(Indexing::Request * request,
                   indexing_.Current(dataset_id, request_id));
  const absl::Status failure =
      Annotate(why.ok() ? Internal("no reason given") : why,
               fmt::format("worker {} cannot list it", request->worker));
  LOG_WARN("dataset.not_indexed dataset={} {}", dataset_id.substr(0, 12),
           Message(failure));
  GiveUp({{dataset_id, failure}}, now, &effects);
  return absl::OkStatus();
}

void Coordinator::GiveUp(const std::vector<Indexing::GivenUp>& given_up,
                         Now now, Effects* effects) {
  for (const auto& [dataset_id, why] : given_up) {
    indexing_.Fail(dataset_id, Message(why), now);
    FinishIndexing(dataset_id, why, effects);
  }
}

// Lets those go on who wait for the dataset.
void Coordinator::FinishIndexing(const std::string& dataset_id,
                                 const absl::Status& status, Effects* effects) {
  indexing_.Finish(dataset_id);
  std::vector<uint64_t> waiting;
  for (const auto& [id, wait] : waits_)
    if (wait.job->dataset_id == dataset_id && !wait.writing)
      waiting.push_back(id);
  for (uint64_t id : waiting) {
    if (status.ok())
      StartCreate(id, effects);
    else
      FinishWait(id, status, effects);
  }
}

void Coordinator::AssignListings(Now now, Effects* effects) {
  for (const auto& [name, directive] : indexing_.Assign(membership_, now)) {
    const Membership::Worker* worker = membership_.Find(name);
    const auto it = worker_sessions_.find(worker->session);
    if (it == worker_sessions_.end()) continue;
    it->second.directives.push_back(directive);
    effects->Add(it->second.wake);
    LOG_INFO("dataset.listing dataset={} worker={}",
             directive.dataset_id.substr(0, 12), name);
  }
}

absl::Status Coordinator::LateWait(const Wait& wait, Now now) const {
  const auto seconds =
      std::chrono::duration<double>(now.mono - wait.started).count();
  const auto it = indexing_.requests().find(wait.job->dataset_id);
  if (it == indexing_.requests().end() || it->second.worker.empty())
    return Unavailable(
        "no worker was ready within {:.1f} s to list {}: start a leat-worker "
        "({} known, {} ready)",
        seconds, wait.job->reader_text, membership_.workers().size(),
        membership_.num_ready());
  return DeadlineExceeded(
      "worker {} still lists {} after {:.1f} s; it goes on: call again",
      it->second.worker, wait.job->reader_text, seconds);
}

void Coordinator::ExpireWaits(Now now, Effects* effects) {
  std::vector<uint64_t> late;
  for (const auto& [id, wait] : waits_)
    if (!wait.writing && now.mono >= wait.deadline) late.push_back(id);
  for (uint64_t id : late) {
    const Wait& wait = waits_.at(id);
    const std::string dataset_id = wait.job->dataset_id;
    FinishWait(id, LateWait(wait, now), effects);
    // A listing that nobody does and nobody waits for is forgotten.
    const Indexing::Request* request = indexing_.Find(dataset_id);
    const bool wanted =
        std::any_of(waits_.begin(), waits_.end(), [&](const auto& entry) {
          return entry.second.job->dataset_id == dataset_id;
        });
    if (request != nullptr && request->worker.empty() && !wanted)
      indexing_.Finish(dataset_id);
  }
}

}  // namespace leat::server
