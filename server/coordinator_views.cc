// SPDX-License-Identifier: Apache-2.0
//
// How things stand: lists, and findings with what to do about them.
#include <algorithm>
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

std::vector<WorkerView> Coordinator::Workers() const {
  MutexLock lock(&mu_);
  const std::map<std::string, uint64_t> loads = assignments_.Loads();
  std::vector<WorkerView> views;
  for (const auto& [name, worker] : membership_.workers()) {
    WorkerView& view = views.emplace_back();
    view.registration = worker.registration;
    view.state = worker.state();
    view.weight = worker.weight;
    if (const auto load = loads.find(name); load != loads.end())
      view.shards_owned = load->second;
    view.stats = worker.stats;
    view.joined_at = worker.joined_at;
    view.last_heartbeat_at = worker.last_heartbeat_at;
  }
  return views;
}

JobView Coordinator::ViewOf(const JobRecord& job) const {
  JobView view;
  view.info = job.info;
  view.created_at = job.created_at;
  view.not_on_gpu = job.not_on_gpu;
  const std::string& name = job.info->spec.name;
  for (const auto& [id, consumer] : consumers_) {
    if (consumer.job != name) continue;
    const ConsumerStats& stats = consumer.stats;
    const bool behind =
        std::pair(stats.epoch, stats.step) < std::pair(view.epoch, view.step);
    if (view.consumers++ == 0 || behind) {
      view.epoch = stats.epoch;
      view.step = stats.step;
    }
    view.steps_per_epoch =
        std::max(view.steps_per_epoch, stats.steps_per_epoch);
    view.rows_per_s += stats.rows_per_s;
    view.stall_fraction = std::max(view.stall_fraction, stats.stall_fraction);
  }
  if (view.steps_per_epoch == 0)
    view.steps_per_epoch =
        Plan(job.info->spec, job.info->dataset.shards).steps_per_epoch();
  if (const auto bad = bad_samples_.find(name); bad != bad_samples_.end()) {
    view.bad_samples_total = bad->second.total;
    for (const auto& [index, sample] : bad->second.first)
      view.bad_samples.push_back(sample);
  }
  return view;
}

std::vector<JobView> Coordinator::Jobs() const {
  MutexLock lock(&mu_);
  std::vector<JobView> views;
  for (const auto& [name, job] : state_.jobs()) views.push_back(ViewOf(job));
  return views;
}

std::vector<DatasetView> Coordinator::Datasets() const {
  MutexLock lock(&mu_);
  std::vector<DatasetView> views;
  for (const auto& [id, dataset] : state_.datasets())
    views.push_back({dataset.info, dataset.indexed_at, "ready", "",
                     state_.JobsOf(id), dataset.index_bytes});
  const auto add = [&](const std::string& id, const std::string& reader,
                       std::string state, const std::string& failure,
                       WallTime at) {
    DatasetView& view = views.emplace_back();
    view.info.id = id;
    view.info.name = id.substr(0, 12);
    view.info.reader = reader;
    view.state = std::move(state);
    view.failure = failure;
    view.indexed_at = at;
  };
  for (const auto& [id, request] : indexing_.requests())
    add(id, request.reader_text, "indexing", "", {});
  for (const Indexing::Failure& failure : indexing_.failures())
    if (state_.FindDataset(failure.dataset_id) == nullptr)
      add(failure.dataset_id, failure.reader_text, "failed", failure.message,
          failure.at);
  std::stable_sort(views.begin(), views.end(),
                   [](const DatasetView& a, const DatasetView& b) {
                     return a.info.name < b.info.name;
                   });
  return views;
}

std::vector<ConsumerView> Coordinator::Consumers() const {
  MutexLock lock(&mu_);
  std::vector<ConsumerView> views;
  for (const auto& [id, consumer] : consumers_)
    views.push_back({consumer.opening.consumer, consumer.stats,
                     consumer.opened_at, consumer.last_report_at});
  std::stable_sort(views.begin(), views.end(),
                   [](const ConsumerView& a, const ConsumerView& b) {
                     return a.consumer < b.consumer;
                   });
  return views;
}

absl::StatusOr<std::vector<ShardView>> Coordinator::Shards(
    std::string_view key) const {
  MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(const DatasetRecord* dataset, state_.ResolveDataset(key));
  const ShardTable& shards = dataset->info.shards;
  const std::shared_ptr<const Assignment> assignment =
      assignments_.ForWorkers(dataset->info.id);
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
             : fmt::format("none of {} workers is ready: no shard has an owner",
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
                     membership_.workers().at(lost[i]).registration.host)});
  if (lost.size() > kMaxAlike)
    findings->push_back(
        {"WORKER_LOST", "warn",
         fmt::format("{} more workers are lost", lost.size() - kMaxAlike),
         "list them: leat get workers"});
  if (membership_.num_ready() > 0) DecoderFindings(findings);
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
                     100 * consumer.stats.stall_fraction),
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
         "give --tls-cert, --tls-key and --token-file instead of --insecure"});
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
  if (!store_->durable()) return;
  for (const auto& [name, worker] : membership_.workers())
    if (!worker.lost &&
        worker.registration.highest_sequence_seen > store_->sequence()) {
      findings->push_back(
          {"STATE_REGRESSED", "error",
           fmt::format("worker {} has seen event {}, but the state ends at {}",
                       name, worker.registration.highest_sequence_seen,
                       store_->sequence()),
           "the state directory is an older copy or another one: restore the "
           "right one, or restart the workers to go on with this"});
      return;
    }
}

}  // namespace leat::server
