// SPDX-License-Identifier: Apache-2.0
//
// The calls of class Datasets: creating and deleting jobs, and refreshing and
// deleting datasets.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/counted.h"
#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/parts/datasets.h"

namespace leat::server {
namespace {

constexpr size_t kNamedDatasets = 3;  // by an event

// Returns "dataset web", or "datasets web, books and 2 more".
std::string NamesOf(std::span<const DatasetInfo> datasets) {
  if (datasets.size() == 1) return fmt::format("dataset {}", datasets[0].name);
  std::vector<std::string_view> names;
  for (const DatasetInfo& dataset :
       datasets.first(std::min(datasets.size(), kNamedDatasets)))
    names.push_back(dataset.name);
  const size_t more = datasets.size() - names.size();
  return fmt::format("datasets {}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

// Makes the job durable. Its dataset is there.
class Datasets::JobTransaction final : public Transaction {
 public:
  JobTransaction(Datasets* datasets, uint64_t creation)
      : datasets_(datasets), creation_(creation) {}

  absl::StatusOr<std::optional<Event>> Decide(
      DeferredActions* deferred) override {
    const JobCreation* const creation = datasets_->creations_.Find(creation_);
    if (creation == nullptr) return std::nullopt;  // cancelled
    const Uses& uses = datasets_->uses_;
    JobCreation::Decision decision =
        creation->Decide(*uses.state, *uses.membership, uses.config->jobs);
    if (decision.answer) {
      datasets_->Answer(creation_, *std::move(decision.answer), deferred);
      return std::nullopt;
    }
    name_ = creation->job().spec.name;
    return std::move(decision.event);
  }
  void Applied(DeferredActions* deferred) override {
    if (!name_.empty()) datasets_->JobWritten(creation_, name_, deferred);
  }
  void Failed(const absl::Status& why, DeferredActions* deferred) override {
    datasets_->Answer(creation_, why, deferred);
  }

 private:
  Datasets* const datasets_;
  const uint64_t creation_;
  std::string name_;  // of the job being appended; empty: none
};

class Datasets::JobDeletion final : public AnsweredTransaction {
 public:
  JobDeletion(Datasets* datasets, const std::string& name, Done done)
      : AnsweredTransaction(std::move(done)),
        datasets_(datasets),
        name_(name) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    const State& state = *datasets_->uses_.state;
    Event event{{}, JobDeleted{name_}, {}};
    if (!state.Check(event).ok()) return NotFound("no job \"{}\"", name_);
    if (const JobRecord* job = state.FindJob(name_))
      gone_ = {job->info, KeysOf(state, *job->info)};
    return event;
  }

 private:
  void Changed(DeferredActions* deferred) override {
    const Uses& uses = datasets_->uses_;
    uses.announcer->Tell({"job.deleted",
                          "info",
                          {"job/" + name_},
                          fmt::format("job {} was deleted", name_)},
                         deferred);
    if (gone_.info != nullptr) uses.expiry->JobGone(gone_, deferred);
  }

  Datasets* const datasets_;
  const std::string name_;
  GoneJob gone_;
};

class Datasets::Deletion final : public AnsweredTransaction {
 public:
  Deletion(Datasets* datasets, const std::string& key, Done done)
      : AnsweredTransaction(std::move(done)), datasets_(datasets), name_(key) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    const State& state = *datasets_->uses_.state;
    const absl::StatusOr<const DatasetRecord*> dataset =
        state.ResolveDataset(name_);
    if (absl::IsNotFound(dataset.status()) &&
        datasets_->indexing_.Forget(name_))
      return std::nullopt;
    RETURN_IF_ERROR(dataset.status());
    id_ = (*dataset)->info->id;
    name_ = (*dataset)->info->name;
    return Event{{}, DatasetDeleted{id_}, {}};
  }

 private:
  void Changed(DeferredActions* deferred) override {
    const Uses& uses = datasets_->uses_;
    uses.announcer->Tell({"dataset.deleted",
                          "info",
                          {"dataset/" + name_},
                          fmt::format("dataset {} was deleted", name_)},
                         deferred);
    uses.expiry->DatasetGone(id_);
  }

  Datasets* const datasets_;
  std::string name_;  // the key, then the dataset's name
  std::string id_;    // empty: only a failed listing is forgotten
};

void Datasets::Create(uint64_t id, JobCreation creation, Now now,
                      DeferredActions* deferred) {
  creations_.Add(id, std::move(creation));
  BeginJob(id, now, deferred);
}

void Datasets::BeginJob(uint64_t id, Now now, DeferredActions* deferred) {
  JobCreation& creation = *creations_.Find(id);
  if (std::optional<JobCreation::Answer> answer =
          creation.Begin(*uses_.state, *uses_.membership))
    return Answer(id, *std::move(answer), deferred);
  if (creation.phase() == JobCreation::Phase::kWriting)
    return WriteJob(id, deferred);
  // A mixture may have more sources than may be listed at a time. A job that
  // exists needs no look.
  if (const absl::Status asked = AskForAll(creation, now); !asked.ok())
    return Answer(id,
                  creation.phase() == JobCreation::Phase::kAttaching
                      ? creation.AttachedTo(*uses_.state, "")
                      : JobCreation::Answer(asked),
                  deferred);
  AssignListings(now, deferred);
  deferred->Add(wake_);
}

absl::Status Datasets::AskForAll(const JobCreation& creation, Now now) {
  bool any = false;
  absl::Status refused;
  for (const auto& [id, source] : creation.waits_for()) {
    absl::Status asked = AskFor(creation, id, now);
    any = any || asked.ok();
    refused.Update(std::move(asked));
  }
  return any ? absl::OkStatus() : refused;
}

void Datasets::AskForMore(Now now, DeferredActions* deferred) {
  for (const uint64_t id : creations_.Waiting()) {
    const JobCreation& creation = *creations_.Find(id);
    for (const auto& [reader_id, source] : creation.waits_for()) {
      if (indexing_.Find(reader_id) != nullptr) continue;
      const absl::Status asked = AskFor(creation, reader_id, now);
      if (absl::IsResourceExhausted(asked)) return;
      if (!asked.ok()) {  // what it arranges is gone
        Answer(id, asked, deferred);
        break;
      }
      deferred->Add(wake_);
    }
  }
}

absl::Status Datasets::AskFor(const JobCreation& creation,
                              const std::string& id, Now now) {
  const PreparedSource& source = *creation.waits_for().at(id);
  ASSIGN_OR_RETURN(const Indexing::Over over,
                   creation.OverOf(*uses_.state, id));
  return indexing_.Ask(id, source.reader, source.reader_text,
                       creation.Wanted(*uses_.state, id), now, over);
}

void Datasets::CancelWait(uint64_t id) {
  if (const std::optional<JobCreation> creation = creations_.Take(id))
    DropUnwantedOf(*creation);
}

// Does nothing if it was cancelled or answered already.
void Datasets::Answer(uint64_t creation, JobCreation::Answer answer,
                      DeferredActions* deferred) {
  std::optional<JobCreation> taken = creations_.Take(creation);
  if (!taken) return;
  DropUnwantedOf(*taken);
  if (answer.ok())
    answer->consumers =
        uses_.sessions->consumers().NumConsumers(answer->info->spec.name);
  deferred->Add(
      [done = taken->TakeDone(), answer = std::move(answer)]() mutable {
        done(std::move(answer));
      });
}

void Datasets::WriteJob(uint64_t id, DeferredActions* deferred) {
  if (creations_.StartWriting(id))
    uses_.transactions->Enqueue(std::make_unique<JobTransaction>(this, id),
                                deferred);
}

void Datasets::JobWritten(uint64_t creation, const std::string& name,
                          DeferredActions* deferred) {
  const std::shared_ptr<const JobInfo> info = uses_.state->FindJob(name)->info;
  uses_.tables->Use(*info, deferred);
  if (!uses_.state->DecodersOf(info->plan_hash)) uses_.decoders->Soon(deferred);
  std::vector<std::string> subjects = {"job/" + info->spec.name};
  for (const DatasetInfo& dataset : info->datasets) {
    uses_.expiry->DatasetUsed(dataset.id);
    if (subjects.size() <= kNamedDatasets)
      subjects.push_back("dataset/" + dataset.name);
  }
  const uint64_t samples = NumSamples(*info);
  uses_.announcer->Tell(
      {"job.created", "info", std::move(subjects),
       fmt::format("job {} was created, of {} of {}", info->spec.name,
                   Counted(samples, "sample"), NamesOf(info->datasets)),
       fmt::format("plan={} decoder={} samples={}", ShortHex(info->plan_hash),
                   Name(info->spec.decoder_class), samples)},
      deferred);
  Answer(creation, CreatedJob{info, /*attached=*/false}, deferred);
}

// The dataset's listing has ended. Creations that came after the attempt had
// begun, or needed more than it did, ask for it again.
void Datasets::GoOn(const std::string& reader_id,
                    const Indexing::Request& request,
                    const absl::Status& status, Now now,
                    DeferredActions* deferred) {
  const State& state = *uses_.state;
  for (const uint64_t id : creations_.WaitingFor(reader_id)) {
    JobCreation& creation = *creations_.Find(id);
    if (creation.phase() == JobCreation::Phase::kAttaching) {
      if (creation.Listed(state, reader_id))
        Answer(id, creation.AttachedTo(state, ChangesOf(creation)), deferred);
    } else if (!status.ok()) {
      Answer(id, creation.OfSource(reader_id, status), deferred);
    } else if (creation.IsCoveredBy(request, id) ||
               creation.TakesAsItIs(state, reader_id)) {
      if (creation.Listed(state, reader_id)) WriteJob(id, deferred);
    } else if (const absl::Status asked = AskFor(creation, reader_id, now);
               !asked.ok()) {
      Answer(id, asked, deferred);
    } else {
      AssignListings(now, deferred);
      deferred->Add(wake_);
    }
  }
}

std::string Datasets::ChangesOf(const JobCreation& creation) const {
  const State& state = *uses_.state;
  const JobRecord* job = state.FindJob(creation.job().spec.name);
  if (job == nullptr) return "";
  std::vector<std::string> changes;
  std::set<std::string_view> seen;  // two sources may be of one dataset
  for (const DatasetInfo& own : job->info->datasets) {
    const DatasetInfo& dataset = StoredDataset(own);
    if (!seen.insert(dataset.id).second) continue;
    std::string text =
        ChangedText(state, *uses_.looks, *state.FindDataset(dataset.id));
    if (text.empty()) continue;
    if (job->info->datasets.size() > 1)
      text = fmt::format("{}: {}", dataset.name, text);
    changes.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(changes, "; "));
}

void Datasets::AnswerLate(Now now, DeferredActions* deferred) {
  while (const std::optional<uint64_t> late = creations_.Late(now.mono)) {
    const JobCreation& creation = *creations_.Find(*late);
    Answer(*late,
           creation.Late(*uses_.state, indexing_, *uses_.membership, now),
           deferred);
  }
}

void Datasets::TellWaiting(Now now, DeferredActions* deferred) {
  while (const std::optional<uint64_t> id = creations_.ToTell(now.mono)) {
    const JobCreation& creation = *creations_.Find(*id);
    deferred->Add([tell = creation.tell(),
                   text = creation.WaitingText(indexing_, *uses_.membership,
                                               now)] { tell(text); });
  }
}

void Datasets::DeleteJob(const std::string& name, Done done,
                         DeferredActions* deferred) {
  uses_.transactions->Enqueue(
      std::make_unique<JobDeletion>(this, name, std::move(done)), deferred);
}

// Only its jobs know a dataset's reader as more than text. An arrangement is
// listed again over the listing that it was made of.
void Datasets::Refresh(const std::string& key, Now now, Done done,
                       DeferredActions* deferred) {
  const State& state = *uses_.state;
  struct Again {
    std::string id;
    PreparedSource source;
    Indexing::Over over;
  };
  const auto prepared = [&]() -> absl::StatusOr<Again> {
    if (refreshes_.size() >= uses_.config->max_waiting_jobs)
      return ResourceExhausted("too many wait for datasets to be listed again");
    ASSIGN_OR_RETURN(const DatasetRecord* dataset, state.ResolveDataset(key));
    const DatasetInfo& info = *dataset->info;
    for (const std::string& name : state.JobsOf(info.id))
      if (const JobRecord* job = state.FindJob(name)) {
        ASSIGN_OR_RETURN(PreparedJob all,
                         Prepare(job->info->spec, job->info->datasets));
        for (size_t i = 0; i < all.sources.size(); ++i) {
          PreparedSource& source = all.sources[i];
          const DatasetInfo& own = job->info->datasets[i];
          if (own.id == info.id && own.base != nullptr)
            return Again{source.arranged_id,
                         source,
                         {.arrangement = source.arrangement, .base = own.base}};
          if (StoredDataset(own).id == info.id)
            return Again{source.reader_id, source, {}};
        }
      }
    return FailedPrecondition(
        "no job uses dataset {}: the next one looks at it by itself",
        info.name);
  }();
  if (!prepared.ok())
    return deferred->Add(
        [done = std::move(done), why = prepared.status()] { done(why); });
  refreshes_.Add(prepared->id, uses_.sessions->NewId(), std::move(done));
  AskAgain(prepared->id,
           {.reader = prepared->source.reader,
            .reader_text = prepared->source.reader_text,
            .over = prepared->over},
           now, deferred);
}

void Datasets::AskAgain(const std::string& reader_id,
                        const Indexing::Request& as, Now now,
                        DeferredActions* deferred) {
  if (const absl::Status asked =
          indexing_.Ask(reader_id, as.reader, as.reader_text, {}, now, as.over);
      !asked.ok()) {
    for (auto& done : refreshes_.Take(reader_id))
      deferred->Add([done = std::move(done), asked] { done(asked); });
    return;
  }
  AssignListings(now, deferred);
  deferred->Add(wake_);
}

void Datasets::Delete(const std::string& key, Done done,
                      DeferredActions* deferred) {
  uses_.transactions->Enqueue(
      std::make_unique<Deletion>(this, key, std::move(done)), deferred);
}

void Datasets::Stop(DeferredActions* deferred) {
  const absl::Status stopping = Unavailable("the coordinator is stopping");
  while (const std::optional<uint64_t> first = creations_.First())
    Answer(*first, stopping, deferred);
  for (auto& done : refreshes_.TakeAll())
    deferred->Add([done = std::move(done), stopping] { done(stopping); });
}

}  // namespace leat::server
