// SPDX-License-Identifier: Apache-2.0
//
// How things stand: lists, and findings with what to do about them.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/plan.h"
#include "core/status.h"
#include "server/coordinator.h"
#include "server/coordinator_internal.h"

namespace leat::server {
namespace {

// Findings of one kind that are listed one by one.
constexpr size_t kMaxAlike = 5;

}  // namespace

std::vector<WorkerView> Coordinator::Workers(const Page& page) const {
  std::vector<WorkerView> views;
  MutexLock lock(&mu_);
  const auto& workers = membership_.workers();
  for (auto it = workers.upper_bound(page.after);
       it != workers.end() && views.size() < page.limit; ++it) {
    const Membership::Worker& worker = it->second;
    views.push_back({worker.registration, worker.state(), worker.weight,
                     assignments_.Load(it->first), worker.report,
                     worker.joined_at, worker.last_heartbeat_at});
  }
  return views;
}

JobView Coordinator::ViewOf(const JobRecord& job) const {
  JobView view;
  view.info = job.info;
  view.created_at = job.created_at;
  view.last_used_at = job.last_used_at;
  view.not_on_gpu = job.not_on_gpu;
  const std::string& name = job.info->spec.name;
  if (const auto ids = job_consumers_.find(name); ids != job_consumers_.end())
    for (const SessionId id : ids->second) {
      const ConsumerReport& report = consumers_.at(id).report;
      const bool behind = std::pair(report.epoch, report.step) <
                          std::pair(view.epoch, view.step);
      if (view.consumers++ == 0 || behind) {
        view.epoch = report.epoch;
        view.step = report.step;
      }
      view.steps_per_epoch =
          std::max(view.steps_per_epoch, report.steps_per_epoch);
      view.rows_per_s += report.rows_per_s;
      view.stall_fraction =
          std::max(view.stall_fraction, report.stall_fraction);
    }
  if (const auto bad = bad_samples_.find(name); bad != bad_samples_.end()) {
    view.bad_samples_total = bad->second.total;
    for (const auto& [index, sample] : bad->second.first)
      view.bad_samples.push_back(sample);
  }
  return view;
}

std::vector<JobView> Coordinator::Jobs(const Page& page) const {
  std::vector<JobView> views;
  {
    MutexLock lock(&mu_);
    const auto& jobs = state_.jobs();
    for (auto it = jobs.upper_bound(page.after);
         it != jobs.end() && views.size() < page.limit; ++it)
      views.push_back(ViewOf(it->second));
  }
  for (JobView& view : views)
    if (view.steps_per_epoch == 0)
      view.steps_per_epoch =
          Plan(view.info->spec, view.info->dataset.shards).steps_per_epoch();
  return views;
}

std::vector<DatasetView> Coordinator::Datasets(const Page& page) const {
  MutexLock lock(&mu_);
  // In the order of names, which need not differ, and then of ids. An entry is
  // of the first kind that it has.
  struct Found {
    const DatasetRecord* ready = nullptr;
    const Indexing::Request* request = nullptr;
    const Indexing::Failure* failure = nullptr;
    std::string_view id;
  };
  std::map<std::string, Found> found;
  const auto entry = [&found](const std::string& name, const std::string& id) {
    Found& at = found[name + '\n' + id];
    at.id = id;
    return &at;
  };
  for (const auto& [id, dataset] : state_.datasets())
    entry(dataset.info->name, id)->ready = &dataset;
  for (const auto& [id, request] : indexing_.requests())
    entry(id.substr(0, 12), id)->request = &request;
  for (const Indexing::Failure& failure : indexing_.failures())
    if (state_.FindDataset(failure.dataset_id) == nullptr)
      entry(failure.dataset_id.substr(0, 12), failure.dataset_id)->failure =
          &failure;

  std::vector<DatasetView> views;
  for (auto it = found.upper_bound(page.after);
       it != found.end() && views.size() < page.limit; ++it) {
    const Found& at = it->second;
    DatasetView& view = views.emplace_back();
    view.key = it->first;
    if (at.ready != nullptr) {
      view.info = at.ready->info;
      view.indexed_at = at.ready->indexed_at;
      view.state = "ready";
      view.jobs = state_.JobsOf(at.id);
      view.index_bytes = at.ready->index_bytes;
      continue;
    }
    auto info = std::make_shared<DatasetInfo>();
    info->id = at.id;
    info->name = at.id.substr(0, 12);
    info->reader = at.request != nullptr ? at.request->reader_text
                                         : at.failure->reader_text;
    view.info = std::move(info);
    view.state = at.request != nullptr ? "indexing" : "failed";
    if (at.request == nullptr) {
      view.failure = at.failure->message;
      view.indexed_at = at.failure->at;
    }
  }
  return views;
}

size_t Coordinator::num_datasets() const {
  MutexLock lock(&mu_);
  return state_.datasets().size() + indexing_.requests().size() +
         indexing_.failures().size();
}

std::vector<ConsumerView> Coordinator::Consumers(const Page& page) const {
  std::vector<ConsumerView> views;
  MutexLock lock(&mu_);
  for (auto it = consumer_keys_.upper_bound(page.after);
       it != consumer_keys_.end() && views.size() < page.limit; ++it) {
    const Consumer& consumer = consumers_.at(it->second);
    views.push_back({it->first, consumer.opening, consumer.job, consumer.report,
                     consumer.opened_at, consumer.last_report_at});
  }
  return views;
}

absl::StatusOr<std::vector<ShardView>> Coordinator::Shards(
    std::string_view key) const {
  std::shared_ptr<const DatasetInfo> dataset;
  std::shared_ptr<const Assignment> assignment;
  {
    MutexLock lock(&mu_);
    ASSIGN_OR_RETURN(const DatasetRecord* record, state_.ResolveDataset(key));
    dataset = record->info;
    if (const auto tables = assignments_.Of(dataset->id); !tables.empty())
      assignment = tables.front();
  }
  const ShardTable& shards = dataset->shards;
  std::vector<ShardView> views(shards.num_shards());
  for (uint32_t shard = 0; shard < shards.num_shards(); ++shard) {
    views[shard].range = shards.range(shard);
    if (assignment == nullptr) continue;
    for (uint32_t i = 0; i < assignment->owners_per_shard; ++i) {
      const size_t at = 2 * (size_t{shard} * assignment->owners_per_shard + i);
      const auto low = static_cast<unsigned char>(assignment->owners[at]);
      const auto high = static_cast<unsigned char>(assignment->owners[at + 1]);
      views[shard].owners.push_back(
          assignment->workers[low + 256u * high].name);
    }
  }
  return views;
}

std::vector<Finding> Coordinator::Findings(Now now) const {
  MutexLock lock(&mu_);
  std::vector<Finding> findings;
  WorkerFindings(&findings);
  JobFindings(now, &findings);
  StoreFindings(&findings);
  return findings;
}

void Coordinator::WorkerFindings(std::vector<Finding>* findings) const {
  const auto& workers = membership_.workers();
  if (membership_.num_ready() == 0)
    findings->push_back(
        {"NO_WORKERS", "error",
         workers.empty()
             ? "no worker is connected: no batch can be made"
             : fmt::format("none of {} workers is ready: consumers keep asking "
                           "those that they know",
                           workers.size()),
         workers.empty()
             ? "start leat-worker --coordinator ADDRESS on some machine"
             : "undrain a worker (leat undrain NAME), or start another one"});
  std::vector<std::string> lost;
  for (const auto& [name, worker] : workers)
    if (worker.lost) lost.push_back(name);
  for (size_t i = 0; i < std::min(lost.size(), kMaxAlike); ++i)
    findings->push_back(
        {"WORKER_LOST", "warn",
         fmt::format("worker {} sends no heartbeat; its shards are with others",
                     lost[i]),
         fmt::format("look at its log on host {}, and start it again",
                     membership_.workers().at(lost[i]).registration->host)});
  if (lost.size() > kMaxAlike)
    findings->push_back(
        {"WORKER_LOST", "warn",
         fmt::format("{} more workers are lost", lost.size() - kMaxAlike),
         "list them: leat get workers"});
  if (membership_.held_until())
    findings->push_back(
        {"WORKERS_SILENT", "warn",
         "many workers fell silent at once: they keep their shards while the "
         "coordinator waits for them",
         "look at the network between the coordinator and the workers, and at "
         "the load of the coordinator's machine"});
  StorageTroubleFindings(findings);
  if (membership_.num_ready() > 0) DecoderFindings(findings);
}

void Coordinator::StorageTroubleFindings(std::vector<Finding>* findings) const {
  if (membership_.num_troubled() == 0) return;
  const bool all = membership_.num_troubled() == membership_.num_ready();
  size_t listed = 0;
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.lost || worker.troubles.empty()) continue;
    if (listed++ == kMaxAlike) break;
    const StorageTrouble& trouble = worker.troubles.front();
    findings->push_back(
        {"WORKER_STORAGE", all ? "error" : "warn",
         fmt::format(
             "worker {} on host {} cannot read {}: {}{}; {}", name,
             worker.registration->host, trouble.root, trouble.error,
             worker.troubles.size() == 1
                 ? ""
                 : fmt::format(" (and {} more)", worker.troubles.size() - 1),
             all ? "no worker can read its storage, so shards stay "
                   "where they were"
                 : "it owns no shards meanwhile"),
         "mount the storage or mend its rights there; the worker comes back by "
         "itself"});
  }
  if (membership_.num_troubled() > kMaxAlike)
    findings->push_back({"WORKER_STORAGE", all ? "error" : "warn",
                         fmt::format("{} more workers have such trouble",
                                     membership_.num_troubled() - kMaxAlike),
                         "look at the storage that they share"});
}

void Coordinator::DecoderFindings(std::vector<Finding>* findings) const {
  std::map<DecoderClass, std::vector<std::string>> jobs;
  for (const auto& [name, job] : state_.jobs())
    if (membership_.num_ready(job.info->spec.decoder_class) == 0)
      jobs[job.info->spec.decoder_class].push_back(name);
  for (const auto& [decoder_class, names] : jobs)
    findings->push_back(
        {"NO_DECODER", "error",
         fmt::format(
             "job{} {}{} want{} decoder class {}, which none of {} "
             "ready worker{} has",
             names.size() == 1 ? "" : "s",
             fmt::join(names.begin(),
                       names.begin() + std::min(names.size(), kMaxAlike), ", "),
             names.size() > kMaxAlike ? " and others" : "",
             names.size() == 1 ? "s" : "", Name(decoder_class),
             membership_.num_ready(), membership_.num_ready() == 1 ? "" : "s"),
         decoder_class == DecoderClass::kNvjpeg
             ? "start a leat-worker on a machine with an NVIDIA GPU and nvJPEG "
               "(leat describe worker NAME says what one has), or create the "
               "job anew with class exact"
             : "start a worker that has it"});
}

void Coordinator::JobFindings(Now now, std::vector<Finding>* findings) const {
  size_t stalled = 0;
  for (const auto& [id, consumer] : consumers_) {
    if (!consumer.stalled_since ||
        now.mono < *consumer.stalled_since + config_.stall_after ||
        ++stalled > kMaxAlike)
      continue;
    findings->push_back(
        {"CONSUMER_STALLED", "warn",
         fmt::format("consumer {} of job {} waits {:.0f} % of its time for "
                     "batches",
                     consumer.opening.consumer, consumer.job,
                     100 * consumer.report.stall_fraction),
         "see leat status: if its job is limited by decode, add workers or "
         "threads; if the workers are idle, storage or the network limits"});
  }
  for (const auto& [name, bad] : bad_samples_) {
    if (bad.first.empty()) continue;
    const BadSample& first = bad.first.begin()->second;
    findings->push_back(
        {"BAD_SAMPLES", "warn",
         fmt::format("job {} met bad samples {} times; the first: {}", name,
                     bad.total, first.reason),
         fmt::format("list them: leat describe job {}; mend or remove the "
                     "files, or set on_bad_sample",
                     name)});
  }
  for (const Indexing::Failure& failure : indexing_.failures())
    if (state_.FindDataset(failure.dataset_id) == nullptr)
      findings->push_back({"INDEX_FAILED", "warn",
                           fmt::format("{} could not be listed: {}",
                                       failure.reader_text, failure.message),
                           "mend the path and create the job again"});
}

void Coordinator::StoreFindings(std::vector<Finding>* findings) const {
  if (!config_.insecure_listener.empty())
    findings->push_back(
        {"INSECURE_LISTENER", "warn",
         fmt::format("{} takes unencrypted connections from the network",
                     config_.insecure_listener),
         "give --tls-cert, --tls-key and --access-token-file instead of "
         "--insecure"});
  if (absl::IsResourceExhausted(last_write_))
    findings->push_back(
        {"STATE_FULL", "error",
         fmt::format("the last change was not kept: {}", Message(last_write_)),
         "free space for the state directory; running jobs go on"});
  else if (!last_write_.ok())
    findings->push_back(
        {"STATE_FAILED", "error",
         fmt::format("the last change was not kept: {}", Message(last_write_)),
         "mend the disk of the state directory and restart the coordinator"});
  for (size_t i = 0; i < std::min(state_.set_aside().size(), kMaxAlike); ++i) {
    const auto& aside = std::get<SetAside>(state_.set_aside()[i].kind);
    findings->push_back(
        {"STATE_SET_ASIDE", "warn",
         fmt::format("{} is stored, but this version cannot use it: {}",
                     aside.what, aside.why),
         aside.job.empty()
             ? "it is kept; run the version that wrote it"
             : fmt::format("it is kept; run the version that made it, or "
                           "delete it: leat delete job {}",
                           aside.job)});
  }
  if (state_.set_aside().size() > kMaxAlike)
    findings->push_back({"STATE_SET_ASIDE", "warn",
                         fmt::format("{} more stored events cannot be used",
                                     state_.set_aside().size() - kMaxAlike),
                         "they are kept; run the version that wrote them"});
  if (!store_->durable()) return;
  const uint64_t sequence = store_->sequence();
  for (const auto& [name, worker] : membership_.workers())
    if (!worker.lost && worker.registration->highest_sequence_seen > sequence) {
      findings->push_back(
          {"STATE_REGRESSED", "error",
           fmt::format("worker {} has seen event {}, but the state ends at {}",
                       name, worker.registration->highest_sequence_seen,
                       sequence),
           "the state directory is an older copy or another one: restore the "
           "right one, or restart the workers to go on with this"});
      return;
    }
}

}  // namespace leat::server
