// SPDX-License-Identifier: Apache-2.0
#include "server/views/status_view.h"

#include <memory>
#include <utility>

#include "core/log.h"
#include "rpc/call/auth.h"
#include "rpc/wire/times.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

constexpr size_t kJobsAtOnce = 100;  // as kWorkersAtOnce

}  // namespace

void SetLimit(const BottleneckView& limit, JobView* job) {
  job->limited_by = std::string(Title(limit.found.limit));
  job->limited_by_seen = limit.seen;
  if (limit.waiting) job->stall_fraction = *limit.waiting;
}

namespace {

DatasetInfo SmallOf(const DatasetInfo& dataset) {
  DatasetInfo small;
  small.id = dataset.id;
  small.name = dataset.name;
  small.reader = dataset.reader;
  small.fingerprint = dataset.fingerprint;
  small.bytes = dataset.bytes;
  return small;
}

}  // namespace

v1::JobSummary SummaryOf(const JobView& view) {
  JobView small = view;
  auto info = std::make_shared<JobInfo>();
  info->spec = view.info->spec;
  for (size_t i = 0; i < NumSources(info->spec); ++i)
    PipelineOf(info->spec, i) = Graph();
  info->spec.selection = {};
  for (MixedSource& source : info->spec.sources) source.selection = {};
  info->schema = view.info->schema;
  info->plan_hash = view.info->plan_hash;
  for (const DatasetInfo& dataset : view.info->datasets)
    info->datasets.push_back(SmallOf(dataset));
  small.info = std::move(info);
  v1::JobSummary proto = ToProto(small);
  v1::Job* const job = proto.mutable_job();
  for (int i = 0; i < job->datasets_size(); ++i)
    job->mutable_datasets(i)->mutable_shards()->set_num_samples(
        view.info->datasets[static_cast<size_t>(i)].shards.num_samples());
  v1::Dataset* const dataset = job->mutable_dataset();
  dataset->set_name(NamesOf(view.info->datasets));
  dataset->mutable_shards()->set_num_samples(NumSamples(*view.info));
  return proto;
}

std::vector<JobView> StatusView::Jobs(const Page& page,
                                      KnownStatistics* workers) const {
  std::vector<JobView> views = coordinator_->Jobs(page);
  const Now now = Now::Of(*clock_);
  const MonotonicTime from = now.mono - kJudgedBy;
  for (JobView& view : views) {
    if (view.consumers == 0) continue;
    if (!*workers) *workers = coordinator_->WorkersSince(from);
    const absl::StatusOr<BottleneckView> limit =
        coordinator_->BottleneckOf(view.info->spec.name, &**workers, from, now);
    if (limit.ok()) SetLimit(*limit, &view);
  }
  return views;
}

v1::GetStatusResponse StatusView::Outline() const {
  v1::GetStatusResponse response;
  response.set_version(std::string(rpc::kLeatVersion));
  {
    MutexLock lock(&mu_);
    response.set_address(address_);
  }
  response.set_cluster(coordinator_->cluster());
  response.set_state_store(coordinator_->store().description());
  *response.mutable_started_at() = rpc::ToProto(started_at_);
  response.set_sequence(coordinator_->store().sequence());
  // A remedy is a line to copy.
  for (Finding& finding : coordinator_->Findings(Now::Of(*clock_))) {
    constexpr std::string_view kPlace = "--coordinator ADDRESS";
    if (const size_t at = finding.remedy.find(kPlace);
        at != std::string::npos && !response.address().empty() &&
        !response.address().starts_with("0.0.0.0:") &&
        !response.address().starts_with("[::]:"))
      finding.remedy.replace(at, kPlace.size(),
                             "--coordinator " + response.address());
    *response.add_findings() = ToProto(finding);
  }
  response.set_datasets(coordinator_->num_datasets());
  response.set_log_level(std::string(LogLevel()));
  return response;
}

v1::GetStatusResponse StatusView::Status() const {
  v1::GetStatusResponse response = Outline();
  for (Page page{"", kWorkersAtOnce};;) {
    const std::vector<WorkerView> views = coordinator_->Workers(page);
    for (const WorkerView& view : views)
      *response.add_workers() = ToProto(view);
    if (views.size() < page.limit) break;
    page.after = views.back().registration->name;
  }
  KnownStatistics workers;
  for (Page page{"", kJobsAtOnce};;) {
    const std::vector<JobView> views = Jobs(page, &workers);
    for (const JobView& view : views) *response.add_jobs() = SummaryOf(view);
    if (views.size() < page.limit) break;
    page.after = views.back().info->spec.name;
  }
  return response;
}

}  // namespace leat::server
