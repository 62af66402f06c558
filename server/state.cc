// SPDX-License-Identifier: Apache-2.0
#include "server/state.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "server/job_check.h"

namespace leat::server {
namespace {

constexpr size_t kMinPrefix = 4;

}  // namespace

absl::Status State::Apply(const Event& event) {
  return std::visit([&](const auto& kind) { return On(event, kind); },
                    event.kind);
}

absl::Status State::On(const Event& event, const DatasetIndexed& indexed) {
  const auto [it, added] = datasets_.try_emplace(indexed.dataset.id);
  if (!added)
    return AlreadyExists("dataset {} is indexed already", indexed.dataset.id);
  it->second = {indexed.dataset, indexed.index_bytes, indexed.index_sha256,
                event.at};
  return absl::OkStatus();
}

absl::Status State::On(const Event&, const DatasetDeleted& deleted) {
  const auto it = datasets_.find(deleted.id);
  if (it == datasets_.end()) return NotFound("no dataset {}", deleted.id);
  if (const std::vector<std::string> jobs = JobsOf(deleted.id); !jobs.empty())
    return FailedPrecondition(
        "dataset {} is used by {} job{}: {}; delete {}", it->second.info.name,
        jobs.size(), jobs.size() == 1 ? "" : "s", fmt::join(jobs, ", "),
        jobs.size() == 1 ? "it first" : "them first");
  datasets_.erase(it);
  return absl::OkStatus();
}

absl::Status State::On(const Event& event, const JobCreated& created) {
  const DatasetRecord* dataset = FindDataset(created.dataset_id);
  if (dataset == nullptr)
    return NotFound("job {} needs dataset {}, which is not there",
                    created.spec.name, created.dataset_id);
  if (jobs_.contains(created.spec.name))
    return AlreadyExists("job {} exists", created.spec.name);
  if (created.spec.decoder_class == DecoderClass::kAuto)
    return DataLoss("job {}: its decoder class is not settled",
                    created.spec.name);
  if (PlanHash(created.spec, dataset->info) != created.plan_hash)
    return DataLoss(
        "job {}: its plan hash is {}, but its spec and dataset give {}",
        created.spec.name, ShortHex(created.plan_hash),
        ShortHex(PlanHash(created.spec, dataset->info)));
  auto info = std::make_shared<JobInfo>();
  info->spec = created.spec;
  info->dataset = dataset->info;
  info->schema = created.schema;
  std::string not_on_gpu = created.not_on_gpu;
  if (info->schema.fields.empty()) {  // as read from disk: the dataset tells
    ASSIGN_OR_RETURN(PreparedJob job,
                     Prepare(created.spec, dataset->info.types));
    info->schema = std::move(job.schema);
    not_on_gpu = std::move(job.not_on_gpu);
  }
  info->plan_hash = created.plan_hash;
  jobs_[created.spec.name] = {std::move(info), event.at, std::move(not_on_gpu)};
  return absl::OkStatus();
}

absl::Status State::On(const Event&, const JobDeleted& deleted) {
  if (jobs_.erase(deleted.name) == 0)
    return NotFound("no job {}", deleted.name);
  return absl::OkStatus();
}

absl::Status State::On(const Event& event, const WorkerDrained& drained) {
  drained_.try_emplace(drained.name, event.at);
  return absl::OkStatus();
}

absl::Status State::On(const Event&, const WorkerUndrained& undrained) {
  drained_.erase(undrained.name);
  return absl::OkStatus();
}

std::vector<Event> State::Events() const {
  std::vector<Event> events;
  for (const auto& [id, dataset] : datasets_)
    events.push_back(
        {dataset.indexed_at, DatasetIndexed{dataset.info, dataset.index_bytes,
                                            dataset.index_sha256}});
  for (const auto& [name, job] : jobs_)
    events.push_back(
        {job.created_at,
         JobCreated{job.info->spec, job.info->dataset.id, job.info->schema,
                    job.info->plan_hash, job.not_on_gpu}});
  for (const auto& [name, at] : drained_)
    events.push_back({at, WorkerDrained{name}});
  return events;
}

const DatasetRecord* State::FindDataset(std::string_view id) const {
  const auto it = datasets_.find(std::string(id));
  return it == datasets_.end() ? nullptr : &it->second;
}

const JobRecord* State::FindJob(std::string_view name) const {
  const auto it = jobs_.find(std::string(name));
  return it == jobs_.end() ? nullptr : &it->second;
}

const JobRecord* State::FindJob(const Digest& plan_hash) const {
  for (const auto& [name, job] : jobs_)
    if (job.info->plan_hash == plan_hash) return &job;
  return nullptr;
}

absl::StatusOr<const DatasetRecord*> State::ResolveDataset(
    std::string_view key) const {
  if (const DatasetRecord* exact = FindDataset(key)) return exact;
  std::vector<const DatasetRecord*> found;
  for (const auto& [id, dataset] : datasets_)
    if (dataset.info.name == key ||
        (key.size() >= kMinPrefix && id.compare(0, key.size(), key) == 0))
      found.push_back(&dataset);
  if (found.empty()) return NotFound("no dataset \"{}\"", key);
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const DatasetRecord* dataset : found)
    names.push_back(fmt::format("{} ({})", dataset->info.id.substr(0, 12),
                                dataset->info.name));
  return InvalidArgument("\"{}\" means {} datasets: {}; give an id", key,
                         found.size(), fmt::join(names, ", "));
}

std::vector<std::string> State::JobsOf(std::string_view dataset_id) const {
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_)
    if (job.info->dataset.id == dataset_id) names.push_back(name);
  return names;
}

}  // namespace leat::server
