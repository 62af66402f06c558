// SPDX-License-Identifier: Apache-2.0
#include "server/state/kept_jobs.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "server/state/job_check.h"

namespace leat::server {
namespace {

const std::set<std::string> kNoJobs;

// Values derived from the job's spec and its dataset.
struct Told {
  BatchSchema schema;
  std::string not_on_gpu;
};

absl::StatusOr<Told> ToldOf(const JobCreated& created,
                            std::span<const DatasetInfo> datasets) {
  if (!created.schema.fields.empty())
    return Told{created.schema, created.not_on_gpu};
  // The state on disk has no types: they come from the datasets.
  ASSIGN_OR_RETURN(PreparedJob job, Prepare(created.spec, datasets));
  return Told{std::move(job.schema), std::move(job.not_on_gpu)};
}

std::vector<DatasetInfo> InfosOf(
    std::span<const DatasetRecord* const> datasets) {
  std::vector<DatasetInfo> infos;
  for (const DatasetRecord* dataset : datasets) infos.push_back(*dataset->info);
  return infos;
}

// Removes the job from one index.
template <class Index, class Key>
void Remove(const std::string& name, const Key& key, Index* index) {
  const auto at = index->find(key);
  if (at == index->end()) return;
  at->second.erase(name);
  if (at->second.empty()) index->erase(at);
}

}  // namespace

absl::Status KeptJobs::Check(
    const JobCreated& created,
    std::span<const DatasetRecord* const> datasets) const {
  const std::string& name = created.spec.name;
  for (size_t i = 0; i < datasets.size(); ++i)
    if (datasets[i] == nullptr)
      return NotFound("job {} needs dataset {}, which is not there", name,
                      created.dataset_ids[i]);
  if (jobs_.contains(name)) return AlreadyExists("job {} exists", name);
  if (created.spec.decoder_class == DecoderClass::kAuto)
    return DataLoss("job {}: its decoder class is not resolved", name);
  const std::vector<DatasetInfo> infos = InfosOf(datasets);
  if (const Digest hash = PlanHash(created.spec, infos);
      hash != created.plan_hash)
    return DataLoss(
        "job {}: its plan hash is {}, but its spec and dataset give {}", name,
        ShortHex(created.plan_hash), ShortHex(hash));
  return ToldOf(created, infos).status();
}

bool KeptJobs::Apply(WallTime at, const JobCreated& created,
                     std::span<const DatasetRecord* const> datasets) {
  auto info = std::make_shared<JobInfo>();
  info->spec = created.spec;
  info->datasets = InfosOf(datasets);
  Told told = *ToldOf(created, info->datasets);
  info->schema = std::move(told.schema);
  info->plan_hash = created.plan_hash;
  jobs_[created.spec.name] = {.info = std::move(info),
                              .created_at = at,
                              .last_used_at = at,
                              .not_on_gpu = std::move(told.not_on_gpu),
                              .created_by = created.created_by,
                              .abilities = AbilitiesFor(created.spec)};
  ++by_creator_[created.created_by];
  for (const std::string& id : created.dataset_ids)
    by_dataset_[id].insert(created.spec.name);
  std::set<std::string>& of_plan = by_hash_[created.plan_hash];
  of_plan.insert(created.spec.name);
  return of_plan.size() == 1;
}

std::shared_ptr<const JobInfo> KeptJobs::Apply(WallTime,
                                               const JobDeleted& deleted) {
  const auto it = jobs_.find(deleted.name);
  if (it == jobs_.end()) return nullptr;
  std::shared_ptr<const JobInfo> info = std::move(it->second.info);
  Remove(deleted.name, info->plan_hash, &by_hash_);
  for (const DatasetInfo& dataset : info->datasets)
    Remove(deleted.name, dataset.id, &by_dataset_);
  const auto creator = by_creator_.find(it->second.created_by);
  if (--creator->second == 0) by_creator_.erase(creator);
  jobs_.erase(it);
  return info;
}

void KeptJobs::Apply(WallTime at, const JobsUsed& used) {
  for (const std::string& name : used.names)
    if (const auto it = jobs_.find(name); it != jobs_.end())
      it->second.last_used_at = std::max(it->second.last_used_at, at);
}

void KeptJobs::AddEvents(std::vector<Event>* events) const {
  std::map<WallTime, JobsUsed> used;
  for (const auto& [name, job] : jobs_) {
    std::vector<std::string> ids;
    for (const DatasetInfo& dataset : job.info->datasets)
      ids.push_back(dataset.id);
    events->push_back(
        {job.created_at,
         JobCreated{job.info->spec, std::move(ids), job.info->schema,
                    job.info->plan_hash, job.not_on_gpu, job.created_by}});
    if (job.last_used_at > job.created_at)
      used[job.last_used_at].names.push_back(name);
  }
  for (auto& [at, names] : used) events->push_back({at, std::move(names)});
}

const JobRecord* KeptJobs::Find(std::string_view name) const {
  const auto it = jobs_.find(std::string(name));
  return it == jobs_.end() ? nullptr : &it->second;
}

const JobRecord* KeptJobs::Find(const Digest& plan_hash) const {
  const auto it = by_hash_.find(plan_hash);
  return it == by_hash_.end() ? nullptr : Find(*it->second.begin());
}

std::set<std::string> KeptJobs::With(const Digest& plan_hash) const {
  const auto it = by_hash_.find(plan_hash);
  return it == by_hash_.end() ? kNoJobs : it->second;
}

const std::set<std::string>& KeptJobs::Of(std::string_view dataset_id) const {
  const auto it = by_dataset_.find(dataset_id);
  return it == by_dataset_.end() ? kNoJobs : it->second;
}

size_t KeptJobs::NumOf(std::string_view creator) const {
  const auto found = by_creator_.find(creator);
  return found == by_creator_.end() ? 0 : found->second;
}

}  // namespace leat::server
