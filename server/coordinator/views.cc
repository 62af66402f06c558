// SPDX-License-Identifier: Apache-2.0
//
// How things stand: lists, page by page, and the snapshot that findings are
// made of. Under the lock only what is asked for is copied; records are shared.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/plan/plan.h"
#include "core/redaction.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// A listing that failed is a finding for so long.
constexpr Duration kFailureIsNew = std::chrono::minutes(10);

// What a worker that is not lost says of who may reach it.
void SnapOpen(const Membership::Worker& worker, WallTime now, Snapshot* to) {
  const auto& [name, host] =
      std::tie(worker.registration->name, worker.registration->host);
  if (const std::string& why = worker.registration->not_confined; !why.empty())
    to->unconfined.Add(name, host, why);
  if (const std::string& address = worker.registration->insecure_listener;
      !address.empty())
    to->insecure.Add(name, host, address);
  if (!worker.report.certificate_expiry) return;
  const Duration left = *worker.report.certificate_expiry - now;
  if (left < kCertificateError)
    to->expiring_soon.Add(name, host, TextOfExpiry(left));
  else if (left < kCertificateWarn)
    to->expiring.Add(name, host, TextOfExpiry(left));
}

}  // namespace

std::vector<WorkerView> Coordinator::Workers(const Page& page) const {
  std::vector<WorkerView> views;
  std::vector<DecoderGroup> groups;
  {
    MutexLock lock(&mu_);
    groups = state_.DecoderGroups();
    const auto& workers = membership_.workers();
    for (auto it = workers.upper_bound(page.after);
         it != workers.end() && views.size() < page.limit; ++it) {
      const Membership::Worker& worker = it->second;
      views.push_back({worker.registration, worker.state(), worker.weight,
                       assignments_.Load(it->first), worker.report,
                       worker.joined_at, worker.last_heartbeat_at,
                       /*decoders_differ=*/"", worker.troubles});
    }
  }
  for (WorkerView& view : views)
    view.decoders_differ = DecodersDiffer(*view.registration, groups);
  return views;
}

Coordinator::SharedParts Coordinator::SharedPartsOfJobs() const {
  std::map<std::string_view, std::pair<uint64_t, uint64_t>> rows;
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.report.stats == nullptr) continue;
    for (const v1::JobRows& job : worker.report.stats->job_rows()) {
      if (job.rows_shared_total() == 0) continue;
      rows[job.job()].first += job.rows_shared_total();
      rows[job.job()].second += job.rows_total();
    }
  }
  SharedParts parts;
  for (const auto& [job, shared_and_all] : rows)
    parts[job] =
        static_cast<double>(shared_and_all.first) /
        static_cast<double>(std::max<uint64_t>(1, shared_and_all.second));
  return parts;
}

JobView Coordinator::ViewOf(const JobRecord& job,
                            const SharedParts& shared) const {
  JobView view;
  view.info = job.info;
  view.created_at = job.created_at;
  view.created_by = job.created_by;
  view.last_used_at = job.last_used_at;
  view.not_on_gpu = job.not_on_gpu;
  view.decoders = state_.DecodersOf(job.info->plan_hash);
  const std::string& name = job.info->spec.name;
  if (const auto part = shared.find(name); part != shared.end())
    view.shared_fraction = part->second;
  for (const SessionId id : consumers_.OfJob(name)) {
    const ConsumerReport& report = consumers_.Find(id)->report;
    const bool behind =
        std::pair(report.epoch, report.step) < std::pair(view.epoch, view.step);
    if (view.consumers++ == 0 || behind) {
      view.epoch = report.epoch;
      view.step = report.step;
    }
    view.steps_per_epoch =
        std::max(view.steps_per_epoch, report.steps_per_epoch);
    view.rows_per_s += report.rows_per_s;
    view.stall_fraction = std::max(view.stall_fraction, report.stall_fraction);
  }
  if (const auto bad = bad_samples_.jobs().find(name);
      bad != bad_samples_.jobs().end()) {
    view.bad_samples_total = bad->second.total;
    for (const auto& [index, sample] : bad->second.first)
      view.bad_samples.push_back(sample);
  }
  if (job.info->spec.max_bad) {
    view.bad_samples_different = bad_samples_.Different(job.info->plan_hash);
    view.bad_samples_allowed = AllowedBadSamples(
        job.info->spec, job.info->dataset.shards.num_samples());
    view.failure = std::string(Message(bad_samples_.Verdict(*job.info)));
  }
  return view;
}

std::vector<JobView> Coordinator::Jobs(const Page& page) const {
  std::vector<JobView> views;
  {
    MutexLock lock(&mu_);
    const SharedParts shared = SharedPartsOfJobs();
    const auto& jobs = state_.jobs();
    for (auto it = jobs.upper_bound(page.after);
         it != jobs.end() && views.size() < page.limit; ++it)
      views.push_back(ViewOf(it->second, shared));
  }
  for (JobView& view : views)
    if (view.steps_per_epoch == 0)
      view.steps_per_epoch =
          Plan(view.info->spec, view.info->dataset.shards).steps_per_epoch();
  return views;
}

UsedJobs Coordinator::JobsInUse(size_t most) const {
  UsedJobs used;
  MutexLock lock(&mu_);
  used.of = state_.jobs().size();
  const SharedParts shared = SharedPartsOfJobs();
  for (const auto& [name, job] : state_.jobs()) {
    if (consumers_.OfJob(name).empty() && !bad_samples_.jobs().contains(name))
      continue;
    if (used.total++ < most) used.first.push_back(ViewOf(job, shared));
  }
  return used;
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
  // A look at a listing that is there is nothing that people wait for.
  for (const auto& [id, request] : indexing_.requests())
    if (!request.look) entry(id.substr(0, 12), id)->request = &request;
  for (const Indexing::Failure& failure : indexing_.failures())
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
      view.indexed_at = at.ready->listed_at;
      view.state = state_.IsCurrent(*at.ready) ? "ready" : "replaced";
      if (const auto look = looks_.find(at.ready->info->id);
          look != looks_.end()) {
        view.looked_at = look->second.at.wall;
        view.looked_entries = look->second.entries;
        view.looked_total = look->second.total;
        view.changes = look->second.changes;
      }
      view.jobs = state_.JobsOf(at.id);
      view.index_bytes = at.ready->index_bytes;
      view.passed_over = at.ready->passed_over;
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
  const auto& names = consumers_.by_name();
  for (auto it = names.upper_bound(page.after);
       it != names.end() && views.size() < page.limit; ++it) {
    const Consumer& consumer = *consumers_.Find(it->second);
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
    if (!views[shard].owners.empty())
      views[shard].kept_share =
          kept_->Of(dataset->id, views[shard].owners.front());
  }
  return views;
}

void Coordinator::SetCertificateExpiry(std::optional<WallTime> at) {
  MutexLock lock(&mu_);
  certificate_expiry_ = at;
}

std::optional<WallTime> Coordinator::CertificateExpiry() const {
  MutexLock lock(&mu_);
  return certificate_expiry_;
}

void Coordinator::SnapWorkers(Now at, Snapshot* to) const {
  const WallTime now = at.wall;
  const auto& workers = membership_.workers();
  to->workers = workers.size();
  to->ready = membership_.num_ready();
  to->may_come = WorkersMayCome(at.mono);
  to->lost = membership_.num_lost();
  to->troubled = membership_.num_troubled();
  to->held = membership_.held_until().has_value();
  const bool expiring = membership_.first_expiry() < now + kCertificateWarn;
  if (to->lost > 0 || to->troubled > 0 || membership_.num_open() > 0 ||
      expiring)
    for (const auto& [name, worker] : workers) {
      const std::string& host = worker.registration->host;
      if (!worker.lost) SnapOpen(worker, now, to);
      if (worker.lost && to->first_lost.size() < kMaxAlike)
        to->first_lost.push_back({name, host});
      if (!worker.lost && !worker.troubles.empty() &&
          to->first_troubled.size() < kMaxAlike)
        to->first_troubled.push_back(
            {name, host, worker.troubles.front(), worker.troubles.size()});
    }
  if (to->ready == 0) return;
  for (const auto& [name, job] : state_.jobs()) {
    const DecoderClass wanted = job.info->spec.decoder_class;
    if (membership_.num_ready(wanted) > 0) continue;
    Snapshot::Jobs& jobs = to->without_decoder[wanted];
    if (jobs.total++ < kMaxAlike) jobs.first.push_back(name);
  }
}

void Coordinator::SnapJobs(Now now, Snapshot* to) const {
  for (const auto& [id, damage] : damaged_.all()) {
    if (to->damaged.size() == kMaxAlike) break;
    if (now.mono - damage.noted_at < DamagedIndexes::kForgotten)
      to->damaged.push_back({DatasetName(id), damage.what, damage.mending});
  }
  for (const auto& [id, consumer] : consumers_.all()) {
    if (to->stalled.size() == kMaxAlike) break;
    if (consumer.stalled_since &&
        now.mono >= *consumer.stalled_since + config_.stall_after)
      to->stalled.push_back({consumer.opening.consumer, consumer.job,
                             consumer.report.stall_fraction});
  }
  for (const auto& [name, said] : unreached_.all())
    if (now.mono - said.said_at <= UnreachedTable::kKept)
      for (const UnreachedWorker& each : said.workers)
        if (to->unreached.size() < kMaxAlike)
          to->unreached.push_back(
              {name, said.job, said.host, each.worker, each.why});
  for (const auto& [name, bad] : bad_samples_.jobs()) {
    if (bad.first.empty()) continue;
    const JobRecord* job = state_.FindJob(name);
    to->bad_jobs.push_back(
        {name, bad.total, bad.first.begin()->second.reason,
         job == nullptr ? absl::OkStatus() : bad_samples_.Verdict(*job->info)});
  }
  for (const Indexing::Failure& failure : indexing_.failures())
    if (now.wall - failure.at < kFailureIsNew)
      to->failed_listings.push_back({Redacted(failure.reader_text),
                                     failure.message,
                                     failure.dataset_id.substr(0, 12)});
  for (const auto& [id, request] : indexing_.requests())
    if (const std::string wait =
            StorageWaitOf(membership_, request.worker, request.reader_text);
        !wait.empty() && to->waiting_listings.size() < kMaxAlike)
      to->waiting_listings.push_back({Redacted(request.reader_text), wait,
                                      id.substr(0, 12), request.worker});
  SnapChanged(to);
}

// Datasets that have changed since the listing that somebody reads them by.
void Coordinator::SnapChanged(Snapshot* to) const {
  for (const auto& [id, dataset] : state_.datasets()) {
    const std::string changes = ChangedText(state_, looks_, dataset);
    if (changes.empty()) continue;
    for (const std::string& job : state_.JobsOf(id)) {
      if (to->changed.size() == kMaxAlike) return;
      if (!consumers_.OfJob(job).empty())
        to->changed.push_back({job, dataset.info->name, changes});
    }
  }
}

void Coordinator::SnapStore(Snapshot* to) const {
  to->insecure_listener = config_.insecure_listener;
  to->not_confined = config_.not_confined;
  to->last_write = last_write_;
  to->losses = store_->losses();
  to->set_aside = state_.set_aside().size();
  for (size_t i = 0; i < std::min(to->set_aside, kMaxAlike); ++i) {
    to->first_set_aside.push_back(
        std::get<SetAside>(state_.set_aside()[i].kind));
    to->first_set_aside.back().record.clear();
  }
  if (!store_->durable()) return;
  const uint64_t sequence = store_->sequence();
  for (const auto& [name, worker] : membership_.workers()) {
    const uint64_t seen = worker.registration->highest_sequence_seen;
    if (worker.lost || seen <= sequence) continue;
    to->regressed = {name, seen, sequence};
    return;
  }
}

}  // namespace leat::server
