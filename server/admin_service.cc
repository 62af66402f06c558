// SPDX-License-Identifier: Apache-2.0
#include "server/admin_service.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/log.h"
#include "core/status.h"
#include "rpc/status.h"
#include "server/convert.h"

namespace leat::server {
namespace {

// Checks who calls, then answers with what `handle` returns.
grpc::ServerUnaryReactor* Handle(grpc::CallbackServerContext* context,
                                 const rpc::Security& security,
                                 const std::function<absl::Status()>& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = rpc::CheckMetadata(security, *context);
  if (status.ok()) status = handle();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// The same for what is answered later.
grpc::ServerUnaryReactor* HandleLater(
    grpc::CallbackServerContext* context, const rpc::Security& security,
    const std::function<void(Coordinator::Done)>& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (absl::Status status = rpc::CheckMetadata(security, *context);
      !status.ok())
    reactor->Finish(rpc::ToGrpc(status));
  else
    handle([reactor](const absl::Status& result) {
      reactor->Finish(rpc::ToGrpc(result));
    });
  return reactor;
}

absl::Status CheckLevel(const std::string& level) {
  constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info",
                                                       "warn", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end())
    return absl::OkStatus();
  return InvalidArgument("log level \"{}\": want one of {}", level,
                         fmt::join(kLevels, ", "));
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest*,
    v1::GetStatusResponse* response) {
  return Handle(context, *security_, [&] {
    response->set_version(std::string(rpc::kLeatVersion));
    {
      MutexLock lock(&mu_);
      response->set_address(address_);
    }
    response->set_state_store(coordinator_->store().description());
    *response->mutable_started_at() = ToProto(started_at_);
    response->set_sequence(coordinator_->store().sequence());
    for (const Finding& finding : coordinator_->Findings(Now::Of(*clock_)))
      *response->add_findings() = ToProto(finding);
    for (const WorkerView& worker : coordinator_->Workers())
      *response->add_workers() = ToProto(worker);
    for (const JobView& job : coordinator_->Jobs())
      *response->add_jobs() = ToProto(job);
    response->set_datasets(coordinator_->Datasets().size());
    response->set_log_level(std::string(LogLevel()));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(
    grpc::CallbackServerContext* context, const v1::ListWorkersRequest*,
    v1::ListWorkersResponse* response) {
  return Handle(context, *security_, [&] {
    for (const WorkerView& worker : coordinator_->Workers())
      *response->add_workers() = ToProto(worker);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListJobs(
    grpc::CallbackServerContext* context, const v1::ListJobsRequest*,
    v1::ListJobsResponse* response) {
  return Handle(context, *security_, [&] {
    for (const JobView& job : coordinator_->Jobs())
      *response->add_jobs() = ToProto(job);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListDatasets(
    grpc::CallbackServerContext* context, const v1::ListDatasetsRequest*,
    v1::ListDatasetsResponse* response) {
  return Handle(context, *security_, [&] {
    for (const DatasetView& dataset : coordinator_->Datasets())
      *response->add_datasets() = ToProto(dataset);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListShards(
    grpc::CallbackServerContext* context, const v1::ListShardsRequest* request,
    v1::ListShardsResponse* response) {
  return Handle(context, *security_, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<ShardView> shards,
                     coordinator_->Shards(request->dataset()));
    for (size_t i = 0; i < shards.size(); ++i) {
      v1::ShardInfo* shard = response->add_shards();
      shard->set_shard(static_cast<uint32_t>(i));
      shard->set_first_sample(shards[i].range.begin);
      shard->set_num_samples(shards[i].range.size());
      shard->mutable_owners()->Assign(shards[i].owners.begin(),
                                      shards[i].owners.end());
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListConsumers(
    grpc::CallbackServerContext* context, const v1::ListConsumersRequest*,
    v1::ListConsumersResponse* response) {
  return Handle(context, *security_, [&] {
    for (const ConsumerView& consumer : coordinator_->Consumers())
      *response->add_consumers() = ToProto(consumer);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::DeleteJob(
    grpc::CallbackServerContext* context, const v1::DeleteJobRequest* request,
    v1::DeleteJobResponse*) {
  return HandleLater(context, *security_, [&](Coordinator::Done done) {
    coordinator_->DeleteJob(request->name(), std::move(done));
  });
}

grpc::ServerUnaryReactor* AdminService::DeleteDataset(
    grpc::CallbackServerContext* context,
    const v1::DeleteDatasetRequest* request, v1::DeleteDatasetResponse*) {
  return HandleLater(context, *security_, [&](Coordinator::Done done) {
    coordinator_->DeleteDataset(request->name(), std::move(done));
  });
}

grpc::ServerUnaryReactor* AdminService::DrainWorker(
    grpc::CallbackServerContext* context, const v1::DrainWorkerRequest* request,
    v1::DrainWorkerResponse*) {
  return HandleLater(context, *security_, [&](Coordinator::Done done) {
    coordinator_->DrainWorker(request->name(), /*drain=*/true, Now::Of(*clock_),
                              std::move(done));
  });
}

grpc::ServerUnaryReactor* AdminService::UndrainWorker(
    grpc::CallbackServerContext* context,
    const v1::UndrainWorkerRequest* request, v1::UndrainWorkerResponse*) {
  return HandleLater(context, *security_, [&](Coordinator::Done done) {
    coordinator_->DrainWorker(request->name(), /*drain=*/false,
                              Now::Of(*clock_), std::move(done));
  });
}

grpc::ServerUnaryReactor* AdminService::SetLogLevel(
    grpc::CallbackServerContext* context, const v1::SetLogLevelRequest* request,
    v1::SetLogLevelResponse*) {
  return Handle(context, *security_, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckLevel(request->level()));
    if (request->worker().empty()) return leat::SetLogLevel(request->level());
    return coordinator_->SetWorkerLogLevel(request->worker(), request->level());
  });
}

}  // namespace leat::server
