// SPDX-License-Identifier: Apache-2.0
#include "server/state/state.h"

#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/status.h"
#include "server/state/list_blocks.h"
#include "server/state/records.h"

namespace leat::server {

// Checks, for each kind of event, that it fits.
struct State::Checker {
  const State& state;

  absl::Status operator()(const DatasetIndexed& indexed) const {
    return state.datasets_.Check(indexed);
  }
  absl::Status operator()(const DatasetListedAgain& again) const {
    return state.datasets_.Check(again);
  }
  absl::Status operator()(const DatasetDeleted& deleted) const {
    RETURN_IF_ERROR(state.datasets_.Check(deleted));
    const std::vector<std::string> jobs = state.JobsOf(deleted.id);
    if (jobs.empty()) return absl::OkStatus();
    return FailedPrecondition(
        "dataset {} is used by {}: {}; delete {}", state.NameOf(deleted.id),
        Counted(jobs.size(), "job"), fmt::join(jobs, ", "),
        jobs.size() == 1 ? "it first" : "them first");
  }
  absl::Status operator()(const JobCreated& created) const {
    const std::string& name = created.spec.name;
    const std::vector<const DatasetRecord*> datasets =
        state.DatasetsOf(created);
    if (std::ranges::find(datasets, nullptr) == datasets.end() &&
        state.IsSetAside(name))
      return FailedPrecondition(
          "job {} exists, but this version cannot use it: delete it first, or "
          "run the version that made it",
          name);
    return state.jobs_.Check(created, datasets);
  }
  absl::Status operator()(const JobDeleted& deleted) const {
    if (state.FindJob(deleted.name) == nullptr &&
        !state.IsSetAside(deleted.name))
      return NotFound("no job {}", deleted.name);
    return absl::OkStatus();
  }
  absl::Status operator()(const AccessCreated& created) const {
    return state.tokens_.Check(created);
  }
  absl::Status operator()(const AccessRevoked& revoked) const {
    return state.tokens_.Check(revoked);
  }
  template <class Kind>
  absl::Status operator()(const Kind&) const {
    return absl::OkStatus();
  }
};

// Applies each kind of event. REQUIRES: it fits.
struct State::Applier {
  State* state;
  WallTime at;

  void operator()(const DatasetIndexed& indexed) const {
    state->datasets_.Apply(at, indexed);
  }
  void operator()(const DatasetListedAgain& again) const {
    state->datasets_.Apply(at, again);
  }
  void operator()(const DatasetDeleted& deleted) const {
    state->datasets_.Apply(at, deleted);
  }
  void operator()(const JobCreated& created) const {
    if (state->jobs_.Apply(at, created, state->DatasetsOf(created)))
      state->plans_.Came(created.plan_hash, created.spec.decoder_class);
  }
  void operator()(const JobDeleted& deleted) const {
    std::erase_if(state->set_aside_, [&](const Event& event) {
      return std::get<SetAside>(event.kind).job == deleted.name;
    });
    const auto gone = state->jobs_.Apply(at, deleted);
    if (gone != nullptr && !state->jobs_.Uses(gone->plan_hash))
      state->plans_.Went(gone->plan_hash, gone->spec.decoder_class);
  }
  void operator()(const JobsUsed& used) const { state->jobs_.Apply(at, used); }
  // A job that was set aside may have any plan: while there is one, no pinned
  // plan is forgotten.
  void operator()(const DecodersPinned& pinned) const {
    const bool keep =
        std::ranges::any_of(state->set_aside_, [](const Event& aside) {
          return !std::get<SetAside>(aside.kind).job.empty();
        });
    state->plans_.Apply(
        at, pinned, keep,
        [this](const Digest& plan) -> std::optional<DecoderClass> {
          const JobRecord* const job = state->FindJob(plan);
          if (job == nullptr) return std::nullopt;
          return job->info->spec.decoder_class;
        });
  }
  void operator()(const WorkerDrained& drained) const {
    state->drained_.Apply(at, drained);
  }
  void operator()(const WorkerUndrained& undrained) const {
    state->drained_.Apply(at, undrained);
  }
  void operator()(const AccessCreated& created) const {
    state->tokens_.Apply(at, created);
  }
  void operator()(const AccessRevoked& revoked) const {
    state->tokens_.Apply(at, revoked);
  }
  void operator()(const PoolBounded& bounded) const {
    state->pools_.Apply(at, bounded);
  }
  void operator()(const FindingMuted& muted) const {
    state->mutes_.Apply(at, muted);
  }
  void operator()(const FindingUnmuted& unmuted) const {
    state->mutes_.Apply(at, unmuted);
  }
  void operator()(const SetAside& aside) const {
    state->set_aside_.push_back({at, aside});
  }
};

absl::Status State::Check(const Event& event) const {
  return std::visit(Checker{*this}, event.kind);
}

absl::Status State::Apply(const Event& event) {
  RETURN_IF_ERROR(Check(event));
  std::visit(Applier{this, event.at}, event.kind);
  return absl::OkStatus();
}

void State::Replay(const Event& event) {
  const absl::Status applied = Apply(event);
  if (applied.ok()) return;
  SetAside aside{event.record.empty() ? EncodeEvent(event) : event.record,
                 "",
                 std::string(Message(applied)),
                 "",
                 {}};
  if (const auto* created = std::get_if<JobCreated>(&event.kind)) {
    aside.job = created->spec.name;
    aside.dataset_ids = created->dataset_ids;
    aside.what = fmt::format("job {}", aside.job);
  } else {
    aside.what = "an event that changes what is not there";
  }
  set_aside_.push_back({event.at, std::move(aside)});
}

std::vector<Event> State::Events() const {
  std::vector<Event> events;
  datasets_.AddEvents(&events);
  jobs_.AddEvents(&events);
  drained_.AddEvents(&events);
  tokens_.AddEvents(&events);
  pools_.AddEvents(&events);
  mutes_.AddEvents(&events);
  events.insert(events.end(), set_aside_.begin(), set_aside_.end());
  // These follow the events that were set aside, because some are kept for
  // them.
  plans_.AddEvents(&events);
  return events;
}

std::optional<Decoders> State::DecodersOf(const Digest& plan_hash) const {
  const JobRecord* const job = FindJob(plan_hash);
  if (job == nullptr) return std::nullopt;
  return plans_.Of(plan_hash, job->info->spec.decoder_class);
}

std::string State::NameOf(const std::string& id) const {
  const DatasetRecord* const dataset = FindDataset(id);
  return dataset == nullptr ? id.substr(0, 12) : dataset->info->name;
}

bool State::IsSetAside(std::string_view job) const {
  return std::ranges::any_of(set_aside_, [&](const Event& event) {
    return std::get<SetAside>(event.kind).job == job && !job.empty();
  });
}

namespace {

bool Names(const SetAside& aside, std::string_view dataset_id) {
  return std::ranges::find(aside.dataset_ids, dataset_id) !=
         aside.dataset_ids.end();
}

}  // namespace

std::vector<const DatasetRecord*> State::DatasetsOf(
    const JobCreated& created) const {
  std::vector<const DatasetRecord*> datasets;
  for (const std::string& id : created.dataset_ids)
    datasets.push_back(FindDataset(id));
  return datasets;
}

std::map<Digest, uint64_t> State::BlocksInUse() const {
  std::map<Digest, uint64_t> blocks;
  for (const auto& [id, dataset] : datasets()) {
    if (dataset.look) blocks[dataset.look->sha256] = dataset.look->bytes;
    for (const IndexBlock& block : *dataset.blocks)
      blocks[block.sha256] = block.bytes;
  }
  for (const auto& [name, job] : jobs()) AddBlocks(job.info->spec, &blocks);
  for (const Event& event : set_aside_)
    blocks.merge(BlocksOfRecord(std::get<SetAside>(event.kind).record));
  return blocks;
}

bool State::HasJobs(std::string_view dataset_id) const {
  if (datasets_.ArrangementsOf(dataset_id) != nullptr) return true;
  return !jobs_.Of(dataset_id).empty() ||
         std::ranges::any_of(set_aside_, [&](const Event& event) {
           const auto& aside = std::get<SetAside>(event.kind);
           return !aside.job.empty() && Names(aside, dataset_id);
         });
}

std::vector<std::string> State::JobsOf(std::string_view dataset_id) const {
  std::set<std::string> jobs = jobs_.Of(dataset_id);
  if (const auto* arrangements = datasets_.ArrangementsOf(dataset_id))
    for (const std::string& id : *arrangements)
      jobs.insert(jobs_.Of(id).begin(), jobs_.Of(id).end());
  std::vector<std::string> names(jobs.begin(), jobs.end());
  for (const Event& event : set_aside_)
    if (const auto& aside = std::get<SetAside>(event.kind);
        !aside.job.empty() && Names(aside, dataset_id))
      names.push_back(aside.job);
  return names;
}

}  // namespace leat::server
