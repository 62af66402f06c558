// SPDX-License-Identifier: Apache-2.0
//
// Lists of the current state, page by page. Only the requested entries are
// copied under the lock; records are shared.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/plan/plan.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"
#include "server/jobs/indexing.h"

namespace leat::server {
namespace {

// JobView::shared_fraction by job. Borrows the workers' reports.
using SharedParts = std::map<std::string_view, double>;
SharedParts SharedPartsOfJobs(const Parts& all) {
  std::map<std::string_view, std::pair<uint64_t, uint64_t>> rows;
  for (const auto& [name, worker] : all.membership.workers()) {
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

JobView ViewOf(const Parts& parts, const JobRecord& job,
               const SharedParts& shared) {
  JobView view;
  view.info = job.info;
  view.created_at = job.created_at;
  view.created_by = job.created_by;
  view.last_used_at = job.last_used_at;
  view.not_on_gpu = job.not_on_gpu;
  view.decoders = parts.state.DecodersOf(job.info->plan_hash);
  const std::string& name = job.info->spec.name;
  if (const auto part = shared.find(name); part != shared.end())
    view.shared_fraction = part->second;
  if (const auto last = parts.positions.find(name);
      last != parts.positions.end()) {
    view.epoch = last->second.epoch;
    view.step = last->second.step;
    view.position_at = last->second.at;
  }
  bool placed = false;  // by a consumer that is no look
  for (const SessionId id : parts.sessions.consumers().OfJob(name)) {
    if (!parts.sessions.consumers().IsNewest(id)) continue;
    const Consumer& consumer = *parts.sessions.consumers().Find(id);
    const ConsumerReport& report = consumer.report;
    const bool behind =
        std::pair(report.epoch, report.step) < std::pair(view.epoch, view.step);
    ++view.consumers;
    if (!consumer.opening.look && (!std::exchange(placed, true) || behind)) {
      view.epoch = report.epoch;
      view.step = report.step;
      view.position_at = consumer.last_report_at;
    }
    view.steps_per_epoch =
        std::max(view.steps_per_epoch, report.steps_per_epoch);
    view.rows_per_s += report.rows_per_s;
    view.stall_fraction = std::max(view.stall_fraction, report.stall_fraction);
  }
  if (const auto bad = parts.bad_samples.jobs().find(name);
      bad != parts.bad_samples.jobs().end()) {
    view.bad_samples_total = bad->second.total;
    for (const auto& [index, sample] : bad->second.first)
      view.bad_samples.push_back(sample);
  }
  if (job.info->spec.max_bad) {
    view.bad_samples_different =
        parts.bad_samples.Different(job.info->plan_hash);
    view.bad_samples_allowed =
        AllowedBadSamples(job.info->spec, NumSamples(*job.info));
    view.failure = std::string(Message(parts.bad_samples.Verdict(*job.info)));
  }
  return view;
}

void FillReady(const Parts& parts, const DatasetRecord& dataset,
               DatasetView* view) {
  view->info = dataset.info;
  view->indexed_at = dataset.listed_at;
  view->state = parts.state.IsCurrent(dataset) ? "ready" : "replaced";
  if (const auto look = parts.looks.find(dataset.info->id);
      look != parts.looks.end()) {
    view->looked_at = look->second.at.wall;
    view->looked_entries = look->second.entries;
    view->looked_total = look->second.total;
    view->changes = look->second.changes;
  }
  view->jobs = parts.state.JobsOf(dataset.info->id);
  view->index_bytes = dataset.index_bytes;
  view->passed_over = dataset.passed_over;
}

// The name for people of what is being listed.
std::string NameOf(const Indexing::Request& request, std::string_view id) {
  const ArrangedOver& over = request.over;
  return over.base == nullptr ? ProposedName(request.reader_text, id)
                              : fmt::format("{} › {}", over.base->name,
                                            ShownText(over.arrangement));
}

std::vector<DatasetView> DatasetsOf(const Parts& parts, const Page& page) {
  // Sorted by name, which need not be unique, and then by ID. An entry is shown
  // as the first kind that it has.
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
  for (const auto& [id, dataset] : parts.state.datasets())
    entry(dataset.info->name, id)->ready = &dataset;
  // A look at an existing listing is not something that people wait for.
  for (const auto& [id, request] : parts.datasets.indexing().requests())
    if (!request.look) entry(NameOf(request, id), id)->request = &request;
  for (const Indexing::Failure& failure : parts.datasets.indexing().failures())
    entry(ProposedName(failure.reader_text, failure.dataset_id),
          failure.dataset_id)
        ->failure = &failure;

  std::vector<DatasetView> views;
  for (auto it = found.upper_bound(page.after);
       it != found.end() && views.size() < page.limit; ++it) {
    const Found& at = it->second;
    DatasetView& view = views.emplace_back();
    view.key = it->first;
    if (at.ready != nullptr) {
      FillReady(parts, *at.ready, &view);
      continue;
    }
    auto info = std::make_shared<DatasetInfo>();
    info->id = at.id;
    info->reader = at.request != nullptr ? at.request->reader_text
                                         : at.failure->reader_text;
    info->name = at.request != nullptr ? NameOf(*at.request, info->id)
                                       : ProposedName(info->reader, at.id);
    view.info = std::move(info);
    view.state = at.request != nullptr ? "indexing" : "failed";
    if (at.request != nullptr) {
      view.walked = at.request->walked;
      view.walked_total = at.request->walked_total;
      view.files = at.request->files;
    } else {
      view.failure = at.failure->message;
      view.indexed_at = at.failure->at;
    }
  }
  return views;
}

}  // namespace

std::vector<WorkerView> Coordinator::Workers(const Page& page) const {
  std::vector<WorkerView> views;
  std::vector<DecoderGroup> groups;
  {
    MutexLock lock(&mu_);
    groups = parts_->state.DecoderGroups();
    const auto& workers = parts_->membership.workers();
    for (auto it = workers.upper_bound(page.after);
         it != workers.end() && views.size() < page.limit; ++it) {
      const Membership::Worker& worker = it->second;
      views.push_back({worker.registration, worker.state(), worker.weight,
                       parts_->tables.assignments().Load(it->first),
                       worker.report, worker.joined_at,
                       worker.last_heartbeat_at,
                       /*decoders_differ=*/"", worker.failures});
    }
  }
  for (WorkerView& view : views)
    view.decoders_differ = DecodersDiffer(*view.registration, groups);
  return views;
}

std::vector<JobView> Coordinator::Jobs(const Page& page) const {
  std::vector<JobView> views;
  {
    MutexLock lock(&mu_);
    const SharedParts shared = SharedPartsOfJobs(*parts_);
    const auto& jobs = parts_->state.jobs();
    for (auto it = jobs.upper_bound(page.after);
         it != jobs.end() && views.size() < page.limit; ++it)
      views.push_back(ViewOf(*parts_, it->second, shared));
  }
  for (JobView& view : views)
    if (view.steps_per_epoch == 0)
      view.steps_per_epoch =
          Plan(view.info->spec, view.info->datasets).steps_per_epoch();
  return views;
}

UsedJobs Coordinator::JobsInUse(size_t most) const {
  UsedJobs used;
  MutexLock lock(&mu_);
  used.of = parts_->state.jobs().size();
  const SharedParts shared = SharedPartsOfJobs(*parts_);
  for (const auto& [name, job] : parts_->state.jobs()) {
    if (parts_->sessions.consumers().OfJob(name).empty() &&
        !parts_->bad_samples.jobs().contains(name))
      continue;
    if (used.total++ < most) used.first.push_back(ViewOf(*parts_, job, shared));
  }
  return used;
}

std::vector<DatasetView> Coordinator::Datasets(const Page& page) const {
  MutexLock lock(&mu_);
  return DatasetsOf(*parts_, page);
}

size_t Coordinator::num_datasets() const {
  MutexLock lock(&mu_);
  const auto& datasets = parts_->state.datasets();
  const Indexing& indexing = parts_->datasets.indexing();
  // As in Datasets: one that is known is not counted again while it is looked
  // at, or listed again.
  const auto unfinished = std::count_if(
      indexing.requests().begin(), indexing.requests().end(),
      [&](const auto& each) {
        return !each.second.look && !datasets.contains(each.first);
      });
  const auto failed =
      std::count_if(indexing.failures().begin(), indexing.failures().end(),
                    [&](const Indexing::Failure& failure) {
                      return !datasets.contains(failure.dataset_id);
                    });
  return datasets.size() + static_cast<size_t>(unfinished + failed);
}

std::vector<ConsumerView> Coordinator::Consumers(const Page& page) const {
  std::vector<ConsumerView> views;
  MutexLock lock(&mu_);
  const auto& names = parts_->sessions.consumers().by_name();
  for (auto it = names.upper_bound(page.after);
       it != names.end() && views.size() < page.limit; ++it) {
    if (!parts_->sessions.consumers().IsNewest(it->second)) continue;
    const Consumer& consumer = *parts_->sessions.consumers().Find(it->second);
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
    ASSIGN_OR_RETURN(const DatasetRecord* record,
                     parts_->state.ResolveDataset(key));
    dataset = record->info;
    if (const auto tables = parts_->tables.assignments().Of(dataset->id);
        !tables.empty())
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

}  // namespace leat::server
