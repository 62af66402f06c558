// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/datasets.h"

#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/log.h"
#include "core/status.h"
#include "server/observe/reports.h"

namespace leat::server {
namespace {

// A dataset that was too large for a full look is listed again after this long,
// even if the parts that were looked at have not changed.
constexpr Duration kLookIsOld = std::chrono::hours(24);

// If the listing is known already, it becomes the current one. The first
// listing of a reader has the reader's ID, later ones IDs of their own, because
// jobs keep the listings that they have.
Event ListedEvent(const State& state, const IndexHeader& header,
                  const Indexing::Request& request) {
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
      .reader = request.reader_text,
      .fingerprint = header.fingerprint,
      .content = header.content,
      .shards = header.shards,
      .bytes = header.bytes,
      .classes = header.classes,
      .types = header.types,
      .groups = header.groups};
  indexed.index_bytes = header.index_bytes;
  indexed.index_sha256 = header.index_sha256;
  indexed.blocks =
      std::make_shared<const std::vector<IndexBlock>>(header.blocks);
  indexed.look = header.look;
  indexed.passed_over = header.passed_over;
  if (request.over.base != nullptr) {
    indexed.base_id = request.over.base->id;
    indexed.dataset.arrangement = CanonicalText(request.over.arrangement);
  }
  return {{}, std::move(indexed), {}};
}

// Returns the name of a dataset that is not listed yet.
std::string ShortId(const std::string& id) { return id.substr(0, 12); }

}  // namespace

class Datasets::ListingTransaction final : public AnsweredTransaction {
 public:
  ListingTransaction(Datasets* datasets, const IndexHeader& header, Now now,
                     Done done)
      : AnsweredTransaction(std::move(done)),
        datasets_(datasets),
        header_(header),
        now_(now) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    ASSIGN_OR_RETURN(
        const Indexing::Request* request,
        datasets_->indexing_.Current(header_.dataset_id, header_.request_id));
    const State& state = *datasets_->uses_.state;
    if (const DatasetRecord* known = state.CurrentListing(header_.dataset_id))
      before_ = known->info->id;
    return ListedEvent(state, header_, *request);
  }

 private:
  void Changed(DeferredActions* deferred) override {
    datasets_->NoteListed(header_, before_, now_, deferred);
    datasets_->FinishListing(header_.dataset_id, absl::OkStatus(), now_,
                             deferred);
  }
  void Refused(const absl::Status& why, DeferredActions* deferred) override {
    deferred->Add([id = ShortId(header_.dataset_id), why] {
      LOG_WARN("dataset.not_written dataset={} {}", id, why.ToString());
    });
    // A worker that got no answer in time uploads again: the attempt may be
    // over, and another one under way.
    if (datasets_->indexing_.Current(header_.dataset_id, header_.request_id)
            .ok())
      datasets_->FinishListing(header_.dataset_id, why, now_, deferred);
  }

  Datasets* const datasets_;
  const IndexHeader header_;
  const Now now_;
  std::string before_;  // ID of the previous listing; empty: none
};

absl::Status Datasets::CheckUpload(const IndexHeader& header) {
  RETURN_IF_ERROR(
      indexing_.Current(header.dataset_id, header.request_id).status());
  const uint64_t limit = uses_.config->max_index_bytes;
  if (header.index_bytes > limit)
    return ResourceExhausted(
        "an index of {} bytes is over the limit of {} bytes",
        header.index_bytes, limit);
  if (header.shards.num_samples() == 0)
    return InvalidArgument("an index without samples");
  if (TotalBytes(header.blocks) != header.index_bytes)
    return InvalidArgument("an index of {} bytes, whose blocks have {}",
                           header.index_bytes, TotalBytes(header.blocks));
  return CheckIndexBlocks(header.blocks, header.shards.num_samples()).status();
}

void Datasets::Listed(const IndexHeader& header, Now now, const Done& done,
                      DeferredActions* deferred) {
  // If another attempt was begun meanwhile, this one must not end it.
  const absl::StatusOr<Indexing::Request*> request =
      indexing_.Current(header.dataset_id, header.request_id);
  if (!request.ok())
    return deferred->Add([done, why = request.status()] { done(why); });
  (*request)->uploaded = true;
  uses_.transactions->Enqueue(
      std::make_unique<ListingTransaction>(this, header, now, done), deferred);
}

// `before`: the ID of the reader's previous listing; empty: it had none.
void Datasets::NoteListed(const IndexHeader& header, const std::string& before,
                          Now now, DeferredActions* deferred) {
  const State& state = *uses_.state;
  const DatasetInfo& dataset = *state.CurrentListing(header.dataset_id)->info;
  if (header.look) (*uses_.looks)[dataset.id] = {.at = now, .changes = {}};
  const std::string subject = "dataset/" + dataset.name;
  if (before.empty() || before == dataset.id)
    return uses_.announcer->Tell(
        {"dataset.indexed",
         "info",
         {subject},
         fmt::format("dataset {} was listed: {}", dataset.name,
                     Counted(dataset.shards.num_samples(), "sample")),
         fmt::format("id={} samples={}", ShortId(dataset.id),
                     dataset.shards.num_samples())},
        deferred);
  uses_.looks->erase(before);
  const std::vector<std::string> jobs = state.JobsOf(before);
  std::vector<std::string> subjects = {subject};
  for (size_t i = 0; i < std::min(jobs.size(), kMaxAlike); ++i)
    subjects.push_back("job/" + jobs[i]);
  uses_.announcer->Tell(
      {"job.dataset_changed", "warn", std::move(subjects),
       fmt::format("dataset {} has changed and was listed again: {}{}{}; jobs "
                   "that exist ({}) keep their listing",
                   dataset.name,
                   Counted(dataset.shards.num_samples(), "sample"),
                   header.changes.empty() ? "" : "; ",
                   fmt::join(header.changes, "; "), jobs.size())},
      deferred);
}

absl::Status Datasets::NoteLooked(const DatasetLooked& looked, Now now,
                                  DeferredActions* deferred) {
  ASSIGN_OR_RETURN(Indexing::Request * request,
                   indexing_.Current(looked.reader_id, looked.request_id));
  if (!request->look)
    return InvalidArgument("a look at dataset {} that was not requested",
                           looked.reader_id);
  if (looked.lists) {  // it gets the timeout of a listing
    request->look.reset();
    request->deadline = now.mono + uses_.config->indexing.attempt_timeout;
    deferred->Add(wake_);
    return absl::OkStatus();
  }
  const DatasetRecord* dataset = uses_.state->CurrentListing(looked.reader_id);
  if (dataset == nullptr)
    return NotFound("dataset {} was deleted meanwhile", looked.reader_id);
  // The parts that were not looked at may have changed.
  if (looked.changes.empty() && looked.entries < looked.total &&
      !request->look_only && now.wall - dataset->listed_at > kLookIsOld) {
    request->look.reset();
    request->worker.clear();
    request->deadline = MonotonicTime::max();
    AssignListings(now, deferred);
    return absl::OkStatus();
  }
  if (looked.entries > 0) {
    const std::string& name = dataset->info->name;
    LastLook& last = (*uses_.looks)[dataset->info->id];
    if (last.changes.empty() && !looked.changes.empty())
      uses_.announcer->Tell(
          {"job.dataset_changed",
           "warn",
           {"dataset/" + name},
           fmt::format("dataset {} has changed since it was listed: {}", name,
                       fmt::join(looked.changes, "; "))},
          deferred);
    last = {now, looked.entries, looked.total, looked.changes};
  }
  FinishListing(looked.reader_id, absl::OkStatus(), now, deferred);
  return absl::OkStatus();
}

void Datasets::Refuse(const std::string& dataset_id, uint64_t request_id,
                      const absl::Status& why, Now now,
                      DeferredActions* deferred) {
  const absl::StatusOr<Indexing::Request*> request =
      indexing_.Current(dataset_id, request_id);
  if (!request.ok() || (*request)->uploaded) return;
  const std::string worker = (*request)->worker;
  deferred->Add([id = ShortId(dataset_id), worker, why] {
    LOG_WARN("dataset.index_refused dataset={} worker={} {}", id, worker,
             Message(why));
  });
  if (absl::IsDataLoss(why)) {
    GiveUp(indexing_.TryAgain(dataset_id, "sent it damaged"), now, deferred);
    AssignListings(now, deferred);
    return;
  }
  GiveUp({{dataset_id,
           Annotate(why, fmt::format("the index that worker {} made of {} is "
                                     "refused",
                                     worker,
                                     ShownReader((*request)->reader_text)))}},
         now, deferred);
}

absl::Status Datasets::Fail(const std::string& dataset_id, uint64_t request_id,
                            const absl::Status& why, Now now,
                            DeferredActions* deferred) {
  ASSIGN_OR_RETURN(Indexing::Request * request,
                   indexing_.Current(dataset_id, request_id));
  const absl::Status failure =
      Annotate(why.ok() ? Internal("no reason given") : why,
               fmt::format("worker {} cannot list it", request->worker));
  GiveUp({{dataset_id, failure}}, now, deferred);
  return absl::OkStatus();
}

absl::Status Datasets::Prolong(const std::string& dataset_id,
                               uint64_t request_id, Now now) {
  ASSIGN_OR_RETURN(Indexing::Request * request,
                   indexing_.Current(dataset_id, request_id));
  request->deadline = now.mono + uses_.config->indexing.attempt_timeout;
  return absl::OkStatus();
}

void Datasets::LoseWorker(const std::string& worker, Now now,
                          DeferredActions* deferred) {
  GiveUp(indexing_.LoseWorker(worker), now, deferred);
}

void Datasets::GiveUp(const std::vector<Indexing::GivenUp>& given_up, Now now,
                      DeferredActions* deferred) {
  for (const auto& [dataset_id, why] : given_up) {
    // Existing jobs attach without the look.
    if (!indexing_.Find(dataset_id)->look_only) {
      indexing_.Fail(dataset_id, Message(why), now);
      uses_.announcer->Tell(
          {"dataset.not_indexed",
           "warn",
           {"dataset/" + ShortId(dataset_id)},
           fmt::format("a dataset could not be listed: {}", Message(why))},
          deferred);
    }
    FinishListing(dataset_id, why, now, deferred);
  }
}

// Continues the calls that wait for the dataset.
void Datasets::FinishListing(const std::string& reader_id,
                             const absl::Status& status, Now now,
                             DeferredActions* deferred) {
  Indexing::Request request;
  if (const Indexing::Request* found = indexing_.Find(reader_id))
    request = *found;
  indexing_.Finish(reader_id);
  for (auto& refreshed : status.ok() ? refreshes_.TakeServed(reader_id, request)
                                     : refreshes_.Take(reader_id))
    deferred->Add(
        [refreshed = std::move(refreshed), status] { refreshed(status); });
  if (refreshes_.Wants(reader_id)) AskAgain(reader_id, request, now, deferred);
  GoOn(reader_id, request, status, now, deferred);
  AskForMore(now, deferred);
}

void Datasets::AssignListings(Now now, DeferredActions* deferred) {
  for (auto& [name, directive] : indexing_.Assign(*uses_.membership, now)) {
    WorkerSession* const session = uses_.sessions->OfWorker(name);
    if (session == nullptr) continue;
    const std::string dataset = ShortId(directive.dataset_id);
    if (!directive.look)
      uses_.announcer->Tell(
          {"dataset.listing",
           "info",
           {"dataset/" + dataset, "worker/" + name},
           fmt::format(
               "worker {} lists dataset {}, which a job waits for", name,
               ProposedName(indexing_.Find(directive.dataset_id)->reader_text,
                            directive.dataset_id))},
          deferred);
    else
      deferred->Add([dataset, name = name] {
        LOG_INFO("dataset.looking dataset={} worker={}", dataset, name);
      });
    indexing_.Find(directive.dataset_id)->covers = uses_.sessions->next_id();
    directive.max_index_bytes = uses_.config->max_index_bytes;
    directive.index_block_bytes = uses_.config->index_block_bytes;
    session->directives.push_back(std::move(directive));
    deferred->Add(session->wake);
  }
}

void Datasets::Tick(Now now, DeferredActions* deferred) {
  GiveUp(indexing_.Expire(now), now, deferred);
  AssignListings(now, deferred);
  AnswerLate(now, deferred);
  TellWaiting(now, deferred);
}

MonotonicTime Datasets::NextDeadline() const {
  return std::min(indexing_.NextDeadline(), creations_.NextDeadline());
}

// Forgets listings that no worker does and no caller waits for.
void Datasets::DropUnwantedOf(const JobCreation& creation) {
  for (const PreparedSource& source : creation.job().sources)
    for (const std::string* id : {&source.reader_id, &source.arranged_id}) {
      const Indexing::Request* request = indexing_.Find(*id);
      if (request != nullptr && request->worker.empty() &&
          !creations_.Wants(*id) && !refreshes_.Wants(*id))
        indexing_.Finish(*id);
    }
}

}  // namespace leat::server
