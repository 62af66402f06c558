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
                            const DatasetRecord& dataset) {
  if (!created.schema.fields.empty())
    return Told{created.schema, created.not_on_gpu};
  // The state on disk has no types: they come from the dataset.
  ASSIGN_OR_RETURN(PreparedJob job, Prepare(created.spec, dataset.info->types));
  return Told{std::move(job.schema), std::move(job.not_on_gpu)};
}

// Removes the job from one index.
template <class Index, class Key>
void Remove(const std::string& name, const Key& key, Index* index) {
  const auto at = index->find(key);
  at->second.erase(name);
  if (at->second.empty()) index->erase(at);
}

}  // namespace

absl::Status KeptJobs::Check(const JobCreated& created,
                             const DatasetRecord* dataset) const {
  const std::string& name = created.spec.name;
  if (dataset == nullptr)
    return NotFound("job {} needs dataset {}, which is not there", name,
                    created.dataset_id);
  if (jobs_.contains(name)) return AlreadyExists("job {} exists", name);
  if (created.spec.decoder_class == DecoderClass::kAuto)
    return DataLoss("job {}: its decoder class is not resolved", name);
  if (const Digest hash = PlanHash(created.spec, *dataset->info);
      hash != created.plan_hash)
    return DataLoss(
        "job {}: its plan hash is {}, but its spec and dataset give {}", name,
        ShortHex(created.plan_hash), ShortHex(hash));
  return ToldOf(created, *dataset).status();
}

bool KeptJobs::Apply(WallTime at, const JobCreated& created,
                     const DatasetRecord& dataset) {
  auto info = std::make_shared<JobInfo>();
  info->spec = created.spec;
  info->dataset = *dataset.info;
  Told told = *ToldOf(created, dataset);
  info->schema = std::move(told.schema);
  info->plan_hash = created.plan_hash;
  jobs_[created.spec.name] = {std::move(info), at, at,
                              std::move(told.not_on_gpu), created.created_by};
  ++by_creator_[created.created_by];
  by_dataset_[created.dataset_id].insert(created.spec.name);
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
  Remove(deleted.name, info->dataset.id, &by_dataset_);
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
    events->push_back(
        {job.created_at,
         JobCreated{job.info->spec, job.info->dataset.id, job.info->schema,
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
