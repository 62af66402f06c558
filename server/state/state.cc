// SPDX-License-Identifier: Apache-2.0
#include "server/state/state.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/status.h"
#include "server/state/job_check.h"
#include "server/state/records.h"

namespace leat::server {
namespace {

constexpr size_t kMinPrefix = 4;
const std::set<Digest> kNoPlans;

}  // namespace

absl::Status State::Check(const Event& event) const {
  return std::visit([&](const auto& kind) { return Fits(kind); }, event.kind);
}

absl::Status State::Apply(const Event& event) {
  RETURN_IF_ERROR(Check(event));
  std::visit([&](const auto& kind) { On(event, kind); }, event.kind);
  return absl::OkStatus();
}

void State::Replay(const Event& event) {
  const absl::Status applied = Apply(event);
  if (applied.ok()) return;
  SetAside aside{event.record.empty() ? EncodeEvent(event) : event.record, "",
                 std::string(Message(applied)), "", ""};
  if (const auto* created = std::get_if<JobCreated>(&event.kind)) {
    aside.job = created->spec.name;
    aside.dataset_id = created->dataset_id;
    aside.what = fmt::format("job {}", aside.job);
  } else {
    aside.what = "an event that changes what is not there";
  }
  On(event, aside);
}

absl::Status State::Fits(const DatasetIndexed& indexed) const {
  if (datasets_.contains(indexed.dataset.id))
    return AlreadyExists("dataset {} is indexed already", indexed.dataset.id);
  return absl::OkStatus();
}

void State::On(const Event& event, const DatasetIndexed& indexed) {
  std::string reader_id = ReaderId(indexed.dataset.reader);
  listings_[reader_id].push_back(indexed.dataset.id);
  datasets_[indexed.dataset.id] = {
      std::make_shared<const DatasetInfo>(indexed.dataset),
      indexed.index_bytes,
      indexed.index_sha256,
      event.at,
      indexed.blocks,
      indexed.look,
      indexed.passed_over,
      event.at,
      std::move(reader_id)};
}

absl::Status State::Fits(const DatasetListedAgain& again) const {
  if (!datasets_.contains(again.id)) return NotFound("no dataset {}", again.id);
  return absl::OkStatus();
}

void State::On(const Event& event, const DatasetListedAgain& again) {
  DatasetRecord& dataset = datasets_.at(again.id);
  dataset.look = again.look;
  dataset.passed_over = again.passed_over;
  dataset.listed_at = event.at;
  std::vector<std::string>& listings = listings_.at(dataset.reader_id);
  std::erase(listings, again.id);
  listings.push_back(again.id);
}

absl::Status State::Fits(const DatasetDeleted& deleted) const {
  const auto it = datasets_.find(deleted.id);
  if (it == datasets_.end()) return NotFound("no dataset {}", deleted.id);
  if (const std::vector<std::string> jobs = JobsOf(deleted.id); !jobs.empty())
    return FailedPrecondition(
        "dataset {} is used by {} job{}: {}; delete {}", it->second.info->name,
        jobs.size(), jobs.size() == 1 ? "" : "s", fmt::join(jobs, ", "),
        jobs.size() == 1 ? "it first" : "them first");
  return absl::OkStatus();
}

void State::On(const Event&, const DatasetDeleted& deleted) {
  const auto it = datasets_.find(deleted.id);
  const auto listings = listings_.find(it->second.reader_id);
  std::erase(listings->second, deleted.id);
  if (listings->second.empty()) listings_.erase(listings);
  datasets_.erase(it);
}

absl::StatusOr<State::Told> State::ToldOf(const JobCreated& created,
                                          const DatasetRecord& dataset) const {
  if (!created.schema.fields.empty())
    return Told{created.schema, created.not_on_gpu};
  // The state on disk has no types: the dataset tells them.
  ASSIGN_OR_RETURN(PreparedJob job, Prepare(created.spec, dataset.info->types));
  return Told{std::move(job.schema), std::move(job.not_on_gpu)};
}

absl::Status State::Fits(const JobCreated& created) const {
  const std::string& name = created.spec.name;
  const DatasetRecord* dataset = FindDataset(created.dataset_id);
  if (dataset == nullptr)
    return NotFound("job {} needs dataset {}, which is not there", name,
                    created.dataset_id);
  if (jobs_.contains(name)) return AlreadyExists("job {} exists", name);
  if (IsSetAside(name))
    return FailedPrecondition(
        "job {} exists, but this version cannot use it: delete it first, or "
        "run the version that made it",
        name);
  if (created.spec.decoder_class == DecoderClass::kAuto)
    return DataLoss("job {}: its decoder class is not settled", name);
  if (const Digest hash = PlanHash(created.spec, *dataset->info);
      hash != created.plan_hash)
    return DataLoss(
        "job {}: its plan hash is {}, but its spec and dataset give {}", name,
        ShortHex(created.plan_hash), ShortHex(hash));
  return ToldOf(created, *dataset).status();
}

// REQUIRES: it fits.
void State::On(const Event& event, const JobCreated& created) {
  const DatasetRecord& dataset = datasets_.at(created.dataset_id);
  auto info = std::make_shared<JobInfo>();
  info->spec = created.spec;
  info->dataset = *dataset.info;
  Told told = *ToldOf(created, dataset);
  info->schema = std::move(told.schema);
  info->plan_hash = created.plan_hash;
  jobs_[created.spec.name] = {std::move(info), event.at, event.at,
                              std::move(told.not_on_gpu), created.created_by};
  ++by_creator_[created.created_by];
  by_hash_[created.plan_hash].insert(created.spec.name);
  if (by_hash_[created.plan_hash].size() == 1) PlanCame(created.plan_hash);
  by_dataset_[created.dataset_id].insert(created.spec.name);
}

absl::Status State::Fits(const JobDeleted& deleted) const {
  if (!jobs_.contains(deleted.name) && !IsSetAside(deleted.name))
    return NotFound("no job {}", deleted.name);
  return absl::OkStatus();
}

void State::On(const Event&, const JobDeleted& deleted) {
  std::erase_if(set_aside_, [&](const Event& event) {
    return std::get<SetAside>(event.kind).job == deleted.name;
  });
  const auto it = jobs_.find(deleted.name);
  if (it == jobs_.end()) return;
  const auto remove = [&](auto& index, const auto& key) {
    const auto at = index.find(key);
    at->second.erase(deleted.name);
    if (at->second.empty()) index.erase(at);
  };
  const std::shared_ptr<const JobInfo> info = std::move(it->second.info);
  remove(by_hash_, info->plan_hash);
  remove(by_dataset_, info->dataset.id);
  const auto creator = by_creator_.find(it->second.created_by);
  if (--creator->second == 0) by_creator_.erase(creator);
  jobs_.erase(it);
  if (!by_hash_.contains(info->plan_hash))
    PlanWent(info->plan_hash, info->spec.decoder_class);
}

void State::On(const Event& event, const WorkerDrained& drained) {
  drained_.try_emplace(drained.name, event.at);
}

void State::On(const Event&, const WorkerUndrained& undrained) {
  drained_.erase(undrained.name);
}

void State::On(const Event& event, const JobsUsed& used) {
  for (const std::string& name : used.names)
    if (const auto it = jobs_.find(name); it != jobs_.end())
      it->second.last_used_at = std::max(it->second.last_used_at, event.at);
}

void State::PlanCame(const Digest& plan_hash) {
  const DecoderClass decoder_class =
      FindJob(plan_hash)->info->spec.decoder_class;
  const auto settled = settled_.find(plan_hash);
  if (settled == settled_.end()) {
    unsettled_[decoder_class].insert(plan_hash);
    return;
  }
  unsettled_[decoder_class].erase(plan_hash);
  const Settled& at = settled->second;
  DecoderGroup& group = groups_[{decoder_class, at.digest}];
  group.decoders = {decoder_class, at.digest, at.libraries};
  ++group.plans;
}

void State::PlanWent(const Digest& plan_hash, DecoderClass decoder_class) {
  unsettled_[decoder_class].erase(plan_hash);
  const auto settled = settled_.find(plan_hash);
  if (settled == settled_.end()) return;
  const auto group = groups_.find({decoder_class, settled->second.digest});
  if (--group->second.plans == 0) groups_.erase(group);
  settled_.erase(settled);
}

// A job that was set aside may have any plan: while there is one, nothing that
// was settled is forgotten.
void State::On(const Event& event, const DecodersSettled& settled) {
  const bool keep = std::ranges::any_of(set_aside_, [](const Event& aside) {
    return !std::get<SetAside>(aside.kind).job.empty();
  });
  for (const Digest& plan : settled.plans) {
    const bool has_jobs = by_hash_.contains(plan);
    if ((!has_jobs && !keep) || settled_.contains(plan)) continue;
    settled_[plan] = {settled.digest, settled.libraries, event.at};
    if (has_jobs) PlanCame(plan);
  }
}

std::optional<Decoders> State::DecodersOf(const Digest& plan_hash) const {
  const JobRecord* const job = FindJob(plan_hash);
  const auto settled = settled_.find(plan_hash);
  if (job == nullptr || settled == settled_.end()) return std::nullopt;
  return Decoders{job->info->spec.decoder_class, settled->second.digest,
                  settled->second.libraries};
}

const std::set<Digest>& State::Unsettled(DecoderClass decoder_class) const {
  const auto it = unsettled_.find(decoder_class);
  return it == unsettled_.end() ? kNoPlans : it->second;
}

std::vector<DecoderGroup> State::DecoderGroups() const {
  std::vector<DecoderGroup> groups;
  for (const auto& [key, group] : groups_) groups.push_back(group);
  return groups;
}

absl::Status State::Fits(const AccessCreated& created) const {
  if (access_.contains(created.token.id))
    return AlreadyExists("access token {} exists", created.token.id);
  return absl::OkStatus();
}

void State::On(const Event& event, const AccessCreated& created) {
  AccessToken& token = access_[created.token.id] = created.token;
  token.created_at = event.at;
}

absl::Status State::Fits(const AccessRevoked& revoked) const {
  if (!access_.contains(revoked.id))
    return NotFound("no access token {}", revoked.id);
  return absl::OkStatus();
}

void State::On(const Event&, const AccessRevoked& revoked) {
  access_.erase(revoked.id);
}

void State::On(const Event& event, const PoolBounded& bounded) {
  if (bounded.bounds.max == 0)
    pools_.erase(bounded.pool);
  else
    pools_[bounded.pool] = {bounded.bounds, event.at};
}

void State::On(const Event& event, const FindingMuted& muted) {
  mutes_[muted.code] = muted;
  muted_at_[muted.code] = event.at;
}

void State::On(const Event&, const FindingUnmuted& unmuted) {
  mutes_.erase(unmuted.code);
  muted_at_.erase(unmuted.code);
}

void State::On(const Event& event, const SetAside& aside) {
  set_aside_.push_back({event.at, aside});
}

size_t State::NumJobsOf(std::string_view creator) const {
  const auto found = by_creator_.find(creator);
  return found == by_creator_.end() ? 0 : found->second;
}

bool State::IsSetAside(std::string_view job) const {
  return std::any_of(
      set_aside_.begin(), set_aside_.end(), [&](const Event& event) {
        return std::get<SetAside>(event.kind).job == job && !job.empty();
      });
}

std::vector<Event> State::Events() const {
  std::vector<Event> events;
  // In the order in which a reader was listed.
  for (const auto& [reader_id, listings] : listings_)
    for (const std::string& id : listings) {
      const DatasetRecord& dataset = datasets_.at(id);
      events.push_back({dataset.indexed_at,
                        DatasetIndexed{*dataset.info, dataset.index_bytes,
                                       dataset.index_sha256, dataset.blocks,
                                       dataset.look, dataset.passed_over}});
      if (dataset.listed_at != dataset.indexed_at)
        events.push_back(
            {dataset.listed_at,
             DatasetListedAgain{id, dataset.look, dataset.passed_over}});
    }
  for (const auto& [name, job] : jobs_)
    events.push_back(
        {job.created_at,
         JobCreated{job.info->spec, job.info->dataset.id, job.info->schema,
                    job.info->plan_hash, job.not_on_gpu, job.created_by}});
  std::map<WallTime, JobsUsed> used;
  for (const auto& [name, job] : jobs_)
    if (job.last_used_at > job.created_at)
      used[job.last_used_at].names.push_back(name);
  for (auto& [at, names] : used) events.push_back({at, std::move(names)});
  for (const auto& [name, at] : drained_)
    events.push_back({at, WorkerDrained{name}});
  for (const auto& [id, token] : access_)
    events.push_back({token.created_at, AccessCreated{token}});
  for (const auto& [name, pool] : pools_)
    events.push_back({pool.at, PoolBounded{name, pool.bounds}});
  for (const auto& [code, muted] : mutes_)
    events.push_back({muted_at_.at(code), muted});
  events.insert(events.end(), set_aside_.begin(), set_aside_.end());
  // Behind those that were set aside, for whose sake some of it is kept.
  std::map<std::tuple<WallTime, Digest, std::string>, DecodersSettled> settled;
  for (const auto& [plan, at] : settled_) {
    DecodersSettled& event = settled[{at.at, at.digest, at.libraries}];
    event.digest = at.digest;
    event.libraries = at.libraries;
    event.plans.push_back(plan);
  }
  for (auto& [key, event] : settled)
    events.push_back({std::get<WallTime>(key), std::move(event)});
  return events;
}

const DatasetRecord* State::FindDataset(std::string_view id) const {
  const auto it = datasets_.find(std::string(id));
  return it == datasets_.end() ? nullptr : &it->second;
}

std::string State::NameOf(const std::string& id) const {
  const DatasetRecord* const dataset = FindDataset(id);
  return dataset == nullptr ? id.substr(0, 12) : dataset->info->name;
}

const DatasetRecord* State::CurrentListing(std::string_view reader_id) const {
  const auto it = listings_.find(reader_id);
  return it == listings_.end() ? nullptr : FindDataset(it->second.back());
}

bool State::IsCurrent(const DatasetRecord& dataset) const {
  return listings_.at(dataset.reader_id).back() == dataset.info->id;
}

const DatasetRecord* State::FindListing(std::string_view reader_id,
                                        const Digest& fingerprint) const {
  const auto it = listings_.find(reader_id);
  if (it == listings_.end()) return nullptr;
  for (const std::string& id : it->second)
    if (const DatasetRecord* dataset = FindDataset(id);
        dataset->info->fingerprint == fingerprint)
      return dataset;
  return nullptr;
}

const JobRecord* State::FindJob(std::string_view name) const {
  const auto it = jobs_.find(std::string(name));
  return it == jobs_.end() ? nullptr : &it->second;
}

const JobRecord* State::FindJob(const Digest& plan_hash) const {
  const auto it = by_hash_.find(plan_hash);
  return it == by_hash_.end() ? nullptr : FindJob(*it->second.begin());
}

std::set<std::string> State::JobsWith(const Digest& plan_hash) const {
  const auto it = by_hash_.find(plan_hash);
  return it == by_hash_.end() ? std::set<std::string>() : it->second;
}

absl::StatusOr<const DatasetRecord*> State::ResolveDataset(
    std::string_view key) const {
  if (const DatasetRecord* exact = FindDataset(key)) return exact;
  std::vector<const DatasetRecord*> found;
  for (const auto& [id, dataset] : datasets_)
    if ((dataset.info->name == key && IsCurrent(dataset)) ||
        (key.size() >= kMinPrefix && id.compare(0, key.size(), key) == 0))
      found.push_back(&dataset);
  if (found.empty()) return NotFound("no dataset \"{}\"", key);
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const DatasetRecord* dataset : found)
    names.push_back(fmt::format("{} ({})", dataset->info->id.substr(0, 12),
                                dataset->info->name));
  return InvalidArgument("\"{}\" means {} datasets: {}; give an id", key,
                         found.size(), fmt::join(names, ", "));
}

bool State::HasJobs(std::string_view dataset_id) const {
  return by_dataset_.contains(dataset_id) ||
         std::any_of(
             set_aside_.begin(), set_aside_.end(), [&](const Event& event) {
               const auto& aside = std::get<SetAside>(event.kind);
               return !aside.job.empty() && aside.dataset_id == dataset_id;
             });
}

std::vector<std::string> State::JobsOf(std::string_view dataset_id) const {
  std::vector<std::string> names;
  if (const auto it = by_dataset_.find(dataset_id); it != by_dataset_.end())
    names.assign(it->second.begin(), it->second.end());
  for (const Event& event : set_aside_)
    if (const auto& aside = std::get<SetAside>(event.kind);
        !aside.job.empty() && aside.dataset_id == dataset_id)
      names.push_back(aside.job);
  return names;
}

}  // namespace leat::server
