// SPDX-License-Identifier: Apache-2.0
#include "server/page/model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/counted.h"
#include "core/plan/plan.h"
#include "core/plan/share_schedule.h"
#include "fmt/format.h"
#include "server/views/messages.h"
#include "server/views/status_view.h"

namespace leat::server {
namespace {

// The page shows how full queues were during this period.
constexpr Duration kQueuesOf = std::chrono::minutes(5);

// Fields of WorkerStats that can be summed over workers.
constexpr int kSums[] = {
    v1::WorkerStats::kRowsPerSFieldNumber,
    v1::WorkerStats::kCapacityRowsPerSFieldNumber,
    v1::WorkerStats::kRowsTotalFieldNumber,
    v1::WorkerStats::kBytesSentTotalFieldNumber,
    v1::WorkerStats::kRowsQueuedFieldNumber,
    v1::WorkerStats::kStreamsFieldNumber,
    v1::WorkerStats::kCacheBytesFieldNumber,
    v1::WorkerStats::kCacheLimitBytesFieldNumber,
    v1::WorkerStats::kCacheHitsTotalFieldNumber,
    v1::WorkerStats::kCacheMissesTotalFieldNumber,
    v1::WorkerStats::kBuffersInUseFieldNumber,
    v1::WorkerStats::kBuffersTotalFieldNumber,
    v1::WorkerStats::kBadSamplesTotalFieldNumber,
    v1::WorkerStats::kRssBytesFieldNumber,
    v1::WorkerStats::kStorageRequestsTotalFieldNumber,
    v1::WorkerStats::kStorageRetriesTotalFieldNumber,
    v1::WorkerStats::kStorageHedgesTotalFieldNumber,
    v1::WorkerStats::kDiskCacheHitsTotalFieldNumber,
    v1::WorkerStats::kDiskCacheMissesTotalFieldNumber,
    v1::WorkerStats::kDiskCacheBytesFieldNumber,
    v1::WorkerStats::kRowsAheadFieldNumber,
    v1::WorkerStats::kBytesAheadFieldNumber,
    v1::WorkerStats::kDamagedStreamsTotalFieldNumber,
};

void AddSums(const v1::WorkerStats& from, v1::WorkerStats* to) {
  const auto* const type = v1::WorkerStats::descriptor();
  const auto* const access = v1::WorkerStats::GetReflection();
  for (const int number : kSums) {
    const auto* const field = type->FindFieldByNumber(number);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE)
      access->SetDouble(
          to, field,
          access->GetDouble(*to, field) + access->GetDouble(from, field));
    else
      access->SetUInt64(
          to, field,
          access->GetUInt64(*to, field) + access->GetUInt64(from, field));
  }
}

std::string ClassOf(const WorkerRegistration& worker) {
  if (worker.devices.empty())
    return "CPU, " + Counted(worker.threads, "thread");
  return fmt::format("{} x {}", worker.devices.size(),
                     worker.devices.front().name());
}

// Makes the data of a tile.
v1::WorkerInfo TileOf(const WorkerView& view) {
  const WorkerRegistration& from = *view.registration;
  v1::WorkerInfo tile;
  tile.set_name(from.name);
  tile.set_state(static_cast<v1::WorkerState>(view.state));
  tile.set_threads(from.threads);
  tile.set_shards_owned(view.shards_owned);
  tile.set_host(from.host);
  tile.set_decoders_differ(view.decoders_differ);
  for (const v1::StorageFailure& failure : view.failures) {
    v1::StorageFailure* const to = tile.add_storage_failures();
    to->set_root(failure.root());
    to->set_error(failure.error());
  }
  // The last statistics of a lost worker are out of date.
  if (view.report.stats == nullptr || view.state == WorkerState::kLost)
    return tile;
  const v1::WorkerStats& stats = *view.report.stats;
  v1::WorkerStats* const to = tile.mutable_stats();
  to->set_rows_per_s(stats.rows_per_s());
  to->set_capacity_rows_per_s(stats.capacity_rows_per_s());
  to->set_busy_fraction(stats.busy_fraction());
  to->set_rows_queued(stats.rows_queued());
  to->set_bad_samples_total(stats.bad_samples_total());
  return tile;
}

bool IsFailing(const WorkerView& view) {
  return view.state != WorkerState::kReady || !view.failures.empty() ||
         !view.decoders_differ.empty();
}

double MedianOf(std::vector<double>* values) {
  if (values->empty()) return 0;
  const auto middle =
      values->begin() + static_cast<ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

// Adds the queues of a message to those of the stages.
template <class Stats>
void AddQueues(const Stats& stats,
               std::map<v1::Stage, v1::StageStats>* queues) {
  for (const v1::StageStats& each : stats.stages()) {
    v1::StageStats& sum = (*queues)[each.stage()];
    sum.set_queue_depth(sum.queue_depth() + each.queue_depth());
    sum.set_queue_capacity(sum.queue_capacity() + each.queue_capacity());
  }
}

// Visits all workers, some at a time, so that the coordinator's lock is free in
// between.
class WorkerWalk {
 public:
  explicit WorkerWalk(PageModel* model) : model_(model) {}

  void Walk(const Coordinator& coordinator,
            std::map<v1::Stage, v1::StageStats>* queues) {
    for (Page page{"", kWorkersAtOnce};;) {
      const std::vector<WorkerView> views = coordinator.Workers(page);
      for (const WorkerView& view : views) See(view, queues);
      if (views.size() < page.limit) break;
      page.after = views.back().registration->name;
    }
    for (auto& [name, number] : numbers_)
      model_->classes[number].median_rows_per_s = MedianOf(&rates_[number]);
    for (auto& [name, number] : numbers_)
      model_->classes[number].median_capacity_rows_per_s =
          MedianOf(&capacities_[number]);
    for (auto* const some : {&failing_, &others_})
      for (auto& [tile, number] : *some) {
        if (model_->class_of.size() == kMaxPageWorkers) return;
        *model_->status.add_workers() = std::move(tile);
        model_->class_of.push_back(number);
      }
  }

 private:
  void See(const WorkerView& view,
           std::map<v1::Stage, v1::StageStats>* queues) {
    ++model_->workers;
    const auto [found, is_new] =
        numbers_.emplace(ClassOf(*view.registration), model_->classes.size());
    const size_t number = found->second;
    if (is_new) {
      model_->classes.push_back({.name = found->first});
      rates_.emplace_back();
      capacities_.emplace_back();
    }
    if (view.state == WorkerState::kLost) ++model_->lost;
    if (view.state == WorkerState::kDraining) ++model_->draining;
    const v1::WorkerStats* const stats = view.report.stats.get();
    if (view.state == WorkerState::kReady) {
      ++model_->ready;
      ++model_->classes[number].ready;
      if (stats != nullptr) rates_[number].push_back(stats->rows_per_s());
      if (stats != nullptr && stats->capacity_rows_per_s() > 0)
        capacities_[number].push_back(stats->capacity_rows_per_s());
    }
    if (view.state != WorkerState::kLost && stats != nullptr) {
      AddSums(*stats, &model_->total);
      AddQueues(*stats, queues);
    }
    auto& into = IsFailing(view) ? failing_ : others_;
    if (into.size() < kMaxPageWorkers) into.emplace_back(TileOf(view), number);
  }

  PageModel* const model_;
  std::map<std::string, size_t> numbers_;  // of classes, by name
  std::vector<std::vector<double>> rates_, capacities_;
  std::vector<std::pair<v1::WorkerInfo, size_t>> failing_, others_;
};

// Keeps the first sources of a mixture, with the shares that are in force, as
// fractions. The number of datasets stays that of sources.
void TrimSources(const JobInfo& job, uint64_t step, v1::Job* shown) {
  if (!IsMixture(job.spec)) return;
  for (v1::Dataset& dataset : *shown->mutable_datasets()) dataset.Clear();
  v1::JobSpec& spec = *shown->mutable_spec();
  const auto kept =
      static_cast<int>(std::min(job.spec.sources.size(), kMaxPageSources));
  spec.mutable_sources()->DeleteSubrange(kept, spec.sources_size() - kept);
  spec.clear_shares();
  const absl::StatusOr<ShareSchedule> schedule = ScheduleOf(job.spec);
  if (!schedule.ok()) return;
  const std::span<const uint64_t> weights =
      schedule->weights(schedule->SegmentAt(step));
  double sum = 0;
  for (const uint64_t weight : weights) sum += static_cast<double>(weight);
  v1::SharesFrom& now = *spec.add_shares();
  for (const uint64_t weight : weights.first(static_cast<size_t>(kept)))
    now.add_weights(static_cast<double>(weight) / sum);
}

v1::JobSummary Shown(const JobView& job) {
  v1::JobSummary summary = SummaryOf(job);
  TrimSources(*job.info, job.epoch * job.steps_per_epoch + job.step,
              summary.mutable_job());
  return summary;
}

// Adds jobs in use, with their verdicts, and then other jobs.
void AddJobs(const Coordinator& coordinator, Now now, PageModel* model) {
  UsedJobs used = coordinator.JobsInUse(kMaxPageJobs);
  model->jobs = used.of;
  model->jobs_in_use = used.total;
  const MonotonicTime from = now.mono - kJudgedBy;
  WorkerSlots workers =
      used.first.empty() ? WorkerSlots() : coordinator.WorkersSince(from);
  std::set<std::string_view> shown;
  for (JobView& job : used.first) {
    const std::string& name = job.info->spec.name;
    shown.insert(name);
    if (job.steps_per_epoch == 0)
      job.steps_per_epoch =
          Plan(job.info->spec, job.info->datasets).steps_per_epoch();
    if (job.consumers > 0) {
      const absl::StatusOr<BottleneckView> limit =
          coordinator.BottleneckOf(name, &workers, from, now);
      if (limit.ok()) {
        SetLimit(*limit, &job);
        model->verdicts.push_back(ToProto(*limit));
      }
    }
    *model->status.add_jobs() = Shown(job);
  }
  for (const JobView& job : coordinator.Jobs({"", kMaxPageJobs})) {
    if (static_cast<size_t>(model->status.jobs_size()) >= kMaxPageJobs) break;
    if (!shown.contains(job.info->spec.name))
      *model->status.add_jobs() = Shown(job);
  }
}

// Adds the first consumers, and the queues of all.
void AddConsumers(const Coordinator& coordinator,
                  std::map<v1::Stage, v1::StageStats>* queues,
                  PageModel* model) {
  for (Page page{"", kMaxPageConsumers};;) {
    const std::vector<ConsumerView> views = coordinator.Consumers(page);
    model->num_consumers += views.size();
    for (const ConsumerView& view : views) {
      if (view.report.stats != nullptr) AddQueues(*view.report.stats, queues);
      if (model->consumers.size() < kMaxPageConsumers)
        model->consumers.push_back(ToProto(view));
    }
    if (views.size() < page.limit) break;
    page.after = views.back().key;
  }
}

void AddDatasets(const Coordinator& coordinator, PageModel* model) {
  for (DatasetView& view : coordinator.Datasets({"", kMaxPageDatasets})) {
    auto small = std::make_shared<DatasetInfo>();
    small->id = view.info->id;
    small->name = view.info->name;
    small->reader = view.info->reader;
    small->bytes = view.info->bytes;
    const uint64_t samples = view.info->shards.num_samples();
    view.info = std::move(small);
    v1::DatasetSummary& summary = model->datasets.emplace_back(ToProto(view));
    summary.mutable_dataset()->mutable_shards()->set_num_samples(samples);
  }
}

}  // namespace

PageModel MakePageModel(const Coordinator& coordinator, const StatusView& view,
                        Now now) {
  PageModel model;
  model.at = now.wall;
  model.status = view.Outline();
  std::map<v1::Stage, v1::StageStats> queues;
  WorkerWalk(&model).Walk(coordinator, &queues);
  AddJobs(coordinator, now, &model);
  AddConsumers(coordinator, &queues, &model);
  AddDatasets(coordinator, &model);
  for (const v1::StageStats& stage :
       coordinator.statistics().Stages(now.mono - kJudgedBy, &model.stages_of))
    queues[stage.stage()].MergeFrom(stage);
  for (auto& [stage, stats] : queues) {
    stats.set_stage(stage);
    model.stages.push_back(std::move(stats));
  }
  model.queues =
      coordinator.statistics().Queues(now.mono - kQueuesOf, now.mono);
  return model;
}

}  // namespace leat::server
