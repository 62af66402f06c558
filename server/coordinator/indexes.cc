// SPDX-License-Identifier: Apache-2.0
//
// Datasets: who lists them, their indexes, and who waits for them.
//
//   CreateJob(a) and CreateJob(b) want dataset d   Indexing::Ask(d), once
//   worker w is ready                              AssignListings: w is told
//   w is lost                                      GiveUp: another is told, or,
//                                                  after three, a and b fail
//   w uploads                                      FinishUpload: its blocks are
//                                                  there, event written,
//                                                  FinishIndexing: a and b go
//                                                  on
//   w's upload is refused                          RefuseUpload: a and b fail
//                                                  with the reason; a damaged
//                                                  one is tried again
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/redaction.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// A dataset that was too large to be looked at in full is listed again after so
// long, though nothing that was looked at has changed.
constexpr Duration kLookIsOld = std::chrono::hours(24);

// A listing that is there already is the one that counts from now on. The first
// of a reader has the reader's id, others ids of their own, since jobs go on
// with the listings that they have.
Event ListedEvent(const State& state, const IndexHeader& header,
                  const std::string& reader_text) {
  const std::string& reader_id = header.dataset_id;
  if (const DatasetRecord* same =
          state.FindListing(reader_id, header.fingerprint))
    return {{},
            DatasetListedAgain{same->info->id, header.look, header.passed_over},
            {}};
  const bool first = state.CurrentListing(reader_id) == nullptr;
  DatasetIndexed indexed;
  indexed.dataset = {
      .id = first ? reader_id
                  : ToHex(HashOf(reader_id + ToHex(header.fingerprint))),
      .name = header.name,
      .reader = reader_text,
      .fingerprint = header.fingerprint,
      .content = header.content,
      .shards = header.shards,
      .bytes = header.bytes,
      .classes = header.classes,
      .types = header.types};
  indexed.index_bytes = header.index_bytes;
  indexed.index_sha256 = header.index_sha256;
  indexed.blocks =
      std::make_shared<const std::vector<IndexBlock>>(header.blocks);
  indexed.look = header.look;
  indexed.passed_over = header.passed_over;
  return {{}, std::move(indexed), {}};
}

}  // namespace

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
  if (TotalBytes(header.blocks) != header.index_bytes)
    return InvalidArgument("an index of {} bytes, whose blocks have {}",
                           header.index_bytes, TotalBytes(header.blocks));
  return CheckIndexBlocks(header.blocks, header.shards.num_samples()).status();
}

void Coordinator::FinishUpload(const IndexHeader& header, Now now,
                               const Done& done) {
  absl::Status status = CheckUpload(header);
  if (status.ok()) status = CheckArrived(header, now);
  if (!status.ok()) {
    RefuseUpload(header.dataset_id, header.request_id, status, now);
    return done(status);
  }

  const std::string id = header.dataset_id;
  const uint64_t request_id = header.request_id;
  const auto kept = std::make_shared<const IndexHeader>(header);
  const auto before = std::make_shared<std::string>();  // the listing's id
  Write write;
  write.decide = [this, request_id, kept,
                  before](Effects*) -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(const Indexing::Request* request,
                     indexing_.Current(kept->dataset_id, request_id));
    if (const DatasetRecord* known = state_.CurrentListing(kept->dataset_id))
      *before = known->info->id;
    return ListedEvent(state_, *kept, request->reader_text);
  };
  write.finish = [this, kept, before, now, done](const absl::Status& result,
                                                 Effects* inner) {
    mu_.AssertHeld();
    inner->Add([kept, result] {
      LOG_INFO("dataset.indexed dataset={} name={} samples={} status={}",
               kept->dataset_id.substr(0, 12), kept->name,
               kept->shards.num_samples(), result.ToString());
    });
    if (result.ok()) NoteListed(*kept, *before, now, inner);
    FinishIndexing(kept->dataset_id, result, now, inner);
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

// `before`: the id of the reader's listing until now; empty: it had none.
void Coordinator::NoteListed(const IndexHeader& header,
                             const std::string& before, Now now,
                             Effects* effects) {
  const DatasetInfo& dataset = *state_.CurrentListing(header.dataset_id)->info;
  if (header.look) looks_[dataset.id] = {.at = now, .changes = {}};
  const std::string subject = "dataset/" + dataset.name;
  if (before.empty() || before == dataset.id) {
    Happened("dataset.indexed", "info", {subject},
             fmt::format("dataset {} was listed: {} samples", dataset.name,
                         dataset.shards.num_samples()),
             effects);
    return;
  }
  looks_.erase(before);
  const std::vector<std::string> jobs = state_.JobsOf(before);
  std::vector<std::string> subjects = {subject};
  for (size_t i = 0; i < std::min(jobs.size(), kMaxAlike); ++i)
    subjects.push_back("job/" + jobs[i]);
  Happened("job.dataset_changed", "warn", std::move(subjects),
           fmt::format("dataset {} has changed and was listed again: {} "
                       "samples{}{}; jobs that exist ({}) keep their listing",
                       dataset.name, dataset.shards.num_samples(),
                       header.changes.empty() ? "" : "; ",
                       fmt::join(header.changes, "; "), jobs.size()),
           effects);
}

absl::Status Coordinator::NoteLooked(const DatasetLooked& looked, Now now) {
  Effects effects;
  MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(Indexing::Request * request,
                   indexing_.Current(looked.reader_id, looked.request_id));
  if (!request->look)
    return InvalidArgument("nobody wanted a look at dataset {}",
                           looked.reader_id);
  if (looked.lists) {  // it has as long as one that began without a look
    request->look.reset();
    request->deadline = now.mono + config_.indexing.attempt_timeout;
    effects.Add(wake_);
    return absl::OkStatus();
  }
  const DatasetRecord* dataset = state_.CurrentListing(looked.reader_id);
  if (dataset == nullptr)
    return NotFound("dataset {} was deleted meanwhile", looked.reader_id);
  // What was not looked at may have changed.
  if (looked.changes.empty() && looked.entries < looked.total &&
      !request->look_only && now.wall - dataset->listed_at > kLookIsOld) {
    request->look.reset();
    request->worker.clear();
    request->deadline = MonotonicTime::max();
    AssignListings(now, &effects);
    return absl::OkStatus();
  }
  if (looked.entries > 0) {
    const std::string& name = dataset->info->name;
    LastLook& last = looks_[dataset->info->id];
    if (last.changes.empty() && !looked.changes.empty())
      Happened("job.dataset_changed", "warn", {"dataset/" + name},
               fmt::format("dataset {} has changed since it was listed: {}",
                           name, fmt::join(looked.changes, "; ")),
               &effects);
    last = {now, looked.entries, looked.total, looked.changes};
  }
  FinishIndexing(looked.reader_id, absl::OkStatus(), now, &effects);
  return absl::OkStatus();
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
  GiveUp(
      {{dataset_id,
        Annotate(why, fmt::format("the index that worker {} made of {} is "
                                  "refused",
                                  worker, Redacted((*request)->reader_text)))}},
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
    // Jobs that exist attach without the look.
    if (indexing_.Find(dataset_id)->look_only) {
      FinishIndexing(dataset_id, why, now, effects);
      continue;
    }
    indexing_.Fail(dataset_id, Message(why), now);
    Happened("dataset.not_indexed", "warn",
             {"dataset/" + dataset_id.substr(0, 12)},
             fmt::format("a dataset could not be listed: {}", Message(why)),
             effects);
    FinishIndexing(dataset_id, why, now, effects);
  }
}

// Lets those go on who wait for the dataset. Those that came after the attempt
// had begun, or wanted more of it, begin again.
void Coordinator::FinishIndexing(const std::string& reader_id,
                                 const absl::Status& status, Now now,
                                 Effects* effects) {
  Indexing::Request request;
  if (const Indexing::Request* found = indexing_.Find(reader_id))
    request = *found;
  indexing_.Finish(reader_id);
  const bool failed = !status.ok();
  for (auto& refreshed : failed ? refreshes_.Take(reader_id)
                                : refreshes_.TakeServed(reader_id, request))
    effects->Add(
        [refreshed = std::move(refreshed), status] { refreshed(status); });
  if (refreshes_.Wants(reader_id))
    AskToRefresh(reader_id, request.reader, request.reader_text, now, effects);
  for (const uint64_t id : creations_.WaitingFor(reader_id)) {
    const JobCreation& creation = *creations_.Find(id);
    if (creation.phase() == JobCreation::Phase::kAttaching) {
      const JobRecord* job = state_.FindJob(creation.job().spec.name);
      Answer(id,
             creation.AttachedTo(
                 state_,
                 job == nullptr
                     ? std::string()
                     : ChangedText(state_, looks_,
                                   *state_.FindDataset(job->info->dataset.id))),
             effects);
    } else if (status.ok() && !creation.IsCoveredBy(request, id)) {
      BeginJob(id, now, effects);
    } else if (status.ok()) {
      WriteJob(id, effects);
    } else {
      Answer(id, status, effects);
    }
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
    if (!directive.look)
      Happened(
          "dataset.listing", "info",
          {"dataset/" + directive.dataset_id.substr(0, 12), "worker/" + name},
          fmt::format("worker {} lists a dataset for the job that wants it",
                      name),
          effects);
    indexing_.Find(directive.dataset_id)->covers = next_id_;
    directive.max_index_bytes = config_.max_index_bytes;
    directive.index_block_bytes = config_.index_block_bytes;
    it->second.directives.push_back(std::move(directive));
    effects->Add(it->second.wake);
  }
}

void Coordinator::AnswerLate(Now now, Effects* effects) {
  while (const std::optional<uint64_t> late = creations_.Late(now.mono)) {
    const JobCreation& creation = *creations_.Find(*late);
    const std::string reader_id = creation.job().reader_id;
    Answer(*late, creation.Late(state_, indexing_, membership_, now), effects);
    DropUnwanted(reader_id);
  }
}

// A listing that nobody does and nobody waits for is forgotten.
void Coordinator::DropUnwanted(const std::string& reader_id) {
  const Indexing::Request* request = indexing_.Find(reader_id);
  if (request != nullptr && request->worker.empty() &&
      !creations_.Wants(reader_id) && !refreshes_.Wants(reader_id))
    indexing_.Finish(reader_id);
}

}  // namespace leat::server
