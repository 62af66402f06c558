// SPDX-License-Identifier: Apache-2.0
//
// Datasets: who lists them, their indexes, and who waits for them.
//
//   CreateJob(a) and CreateJob(b) want dataset d   Indexing::Ask(d), once
//   worker w is ready                              AssignListings: w is told
//   w is lost                                      GiveUp: another is told, or,
//                                                  after three, a and b fail
//   w uploads                                      FinishUpload: hash checked,
//                                                  event and index written,
//                                                  FinishIndexing: a and b go
//                                                  on
//   w's upload is refused                          RefuseUpload: a and b fail
//                                                  with the reason; a damaged
//                                                  one is tried again
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator.h"
#include "server/coordinator_internal.h"

namespace leat::server {

absl::Status Coordinator::CheckUpload(const IndexHeader& header) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(
      indexing_.Current(header.dataset_id, header.request_id).status());
  const uint64_t limit =
      header.blocks.empty()
          ? std::min(config_.max_index_bytes, config_.max_whole_index_bytes)
          : config_.max_index_bytes;
  if (header.index_bytes > limit)
    return ResourceExhausted(
        "an index of {} bytes is over the limit of {} bytes",
        header.index_bytes, limit);
  if (header.shards.num_samples() == 0)
    return InvalidArgument("an index without samples");
  if (header.blocks.empty()) return absl::OkStatus();
  if (TotalBytes(header.blocks) != header.index_bytes)
    return InvalidArgument("an index of {} bytes, whose blocks have {}",
                           header.index_bytes, TotalBytes(header.blocks));
  return CheckIndexBlocks(header.blocks, header.shards.num_samples()).status();
}

void Coordinator::FinishUpload(const IndexHeader& header, std::string index,
                               Now now, const Done& done) {
  absl::Status status = CheckUpload(header);
  if (status.ok()) status = CheckArrived(header, index, now);
  if (!status.ok()) {
    RefuseUpload(header.dataset_id, header.request_id, status, now);
    return done(status);
  }

  // Made here, since a header may be large.
  const auto indexed = std::make_shared<DatasetIndexed>();
  indexed->dataset = {.id = header.dataset_id,
                      .name = header.name,
                      .reader = "",
                      .fingerprint = header.fingerprint,
                      .content = header.content,
                      .shards = header.shards,
                      .bytes = header.bytes,
                      .classes = header.classes,
                      .types = header.types};
  indexed->index_bytes = header.index_bytes;
  indexed->index_sha256 = header.index_sha256;
  if (!header.blocks.empty())
    indexed->blocks =
        std::make_shared<const std::vector<IndexBlock>>(header.blocks);
  const std::string id = header.dataset_id, name = header.name;
  const uint64_t request_id = header.request_id;
  const uint64_t samples = header.shards.num_samples();
  Write write;
  write.index = std::move(index);
  write.decide = [this, id, request_id,
                  indexed](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(const Indexing::Request* request,
                     indexing_.Current(id, request_id));
    indexed->dataset.reader = request->reader_text;
    return Event{{}, std::move(*indexed), {}};
  };
  write.finish = [this, id, name, samples, done](const absl::Status& result,
                                                 Effects* inner) {
    mu_.AssertHeld();
    inner->Add([id, name, samples, result] {
      LOG_INFO("dataset.indexed dataset={} name={} samples={} status={}",
               id.substr(0, 12), name, samples, result.ToString());
    });
    if (result.ok())
      Happened("dataset.indexed", "info", {"dataset/" + name},
               fmt::format("dataset {} was listed: {} samples", name, samples),
               inner);
    FinishIndexing(id, result, inner);
    inner->Add([done, result] { done(result); });
  };
  Effects effects;
  MutexLock lock(&mu_);
  // Another attempt, if it was begun meanwhile, is not to end by this one.
  const absl::StatusOr<Indexing::Request*> request =
      indexing_.Current(id, request_id);
  if (!request.ok())
    return effects.Add([done, why = request.status()] { done(why); });
  (*request)->uploaded = true;
  Enqueue(std::move(write), &effects);
}

void Coordinator::RefuseUpload(const std::string& dataset_id,
                               uint64_t request_id, const absl::Status& why,
                               Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  const absl::StatusOr<Indexing::Request*> request =
      indexing_.Current(dataset_id, request_id);
  if (!request.ok() || (*request)->uploaded) return;
  const std::string worker = (*request)->worker;
  effects.Add([dataset_id, worker, why] {
    LOG_WARN("dataset.index_refused dataset={} worker={} {}",
             dataset_id.substr(0, 12), worker, Message(why));
  });
  if (absl::IsDataLoss(why)) {
    GiveUp(indexing_.TryAgain(dataset_id, "sent it damaged"), now, &effects);
    AssignListings(now, &effects);
    return;
  }
  GiveUp({{dataset_id,
           Annotate(why, fmt::format("the index that worker {} made of {} is "
                                     "refused",
                                     worker, (*request)->reader_text))}},
         now, &effects);
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
  effects.Add([dataset_id, failure] {
    LOG_WARN("dataset.not_indexed dataset={} {}", dataset_id.substr(0, 12),
             Message(failure));
  });
  GiveUp({{dataset_id, failure}}, now, &effects);
  return absl::OkStatus();
}

void Coordinator::GiveUp(const std::vector<Indexing::GivenUp>& given_up,
                         Now now, Effects* effects) {
  for (const auto& [dataset_id, why] : given_up) {
    indexing_.Fail(dataset_id, Message(why), now);
    Happened("dataset.not_indexed", "warn",
             {"dataset/" + dataset_id.substr(0, 12)},
             fmt::format("a dataset could not be listed: {}", Message(why)),
             effects);
    FinishIndexing(dataset_id, why, effects);
  }
}

// Lets those go on who wait for the dataset.
void Coordinator::FinishIndexing(const std::string& dataset_id,
                                 const absl::Status& status, Effects* effects) {
  indexing_.Finish(dataset_id);
  for (const uint64_t id : creations_.WaitingFor(dataset_id)) {
    if (status.ok())
      WriteJob(id, effects);
    else
      Answer(id, status, effects);
  }
}

void Coordinator::AssignListings(Now now, Effects* effects) {
  for (auto& [name, directive] : indexing_.Assign(membership_, now)) {
    const Membership::Worker* worker = membership_.Find(name);
    const auto it = worker_sessions_.find(worker->session);
    if (it == worker_sessions_.end()) continue;
    effects->Add([dataset = directive.dataset_id.substr(0, 12), name = name] {
      LOG_INFO("dataset.listing dataset={} worker={}", dataset, name);
    });
    Happened(
        "dataset.listing", "info",
        {"dataset/" + directive.dataset_id.substr(0, 12), "worker/" + name},
        fmt::format("worker {} lists a dataset for the job that wants it",
                    name),
        effects);
    directive.max_index_bytes = config_.max_index_bytes;
    directive.index_block_bytes = config_.index_block_bytes;
    it->second.directives.push_back(std::move(directive));
    effects->Add(it->second.wake);
  }
}

void Coordinator::AnswerLate(Now now, Effects* effects) {
  while (const std::optional<uint64_t> late = creations_.Late(now.mono)) {
    const JobCreation& creation = *creations_.Find(*late);
    const std::string dataset_id = creation.job().dataset_id;
    Answer(*late, creation.Late(indexing_, membership_, now), effects);
    DropUnwanted(dataset_id);
  }
}

// A listing that nobody does and nobody waits for is forgotten.
void Coordinator::DropUnwanted(const std::string& dataset_id) {
  const Indexing::Request* request = indexing_.Find(dataset_id);
  if (request != nullptr && request->worker.empty() &&
      !creations_.Wants(dataset_id))
    indexing_.Finish(dataset_id);
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
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

}  // namespace leat::server
