// SPDX-License-Identifier: Apache-2.0
#include "server/calls/service.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "core/status.h"
#include "rpc/access/access.h"
#include "rpc/call/grpc_status.h"
#include "rpc/call/server_stream.h"
#include "rpc/wire/messages.h"
#include "server/calls/index_transfer.h"
#include "server/calls/sessions.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

// A call without a deadline waits no longer than this.
constexpr Duration kMaxWait = std::chrono::minutes(30);
// The answer, which says why, leaves this much before the caller gives up: on a
// busy machine, too, it comes before gRPC ends the call without a reason.
constexpr Duration kMargin = std::chrono::milliseconds(500);

MonotonicTime WaitUntil(const grpc::CallbackServerContext& context, Now now) {
  const auto left = std::clamp<std::chrono::system_clock::duration>(
      context.deadline() - std::chrono::system_clock::now(),
      std::chrono::seconds(0), kMaxWait);
  return now.mono + left - std::min<Duration>(kMargin, left / 8);
}

class CreateJobCall : public grpc::ServerUnaryReactor {
 public:
  CreateJobCall(Coordinator* coordinator, v1::CreateJobResponse* response)
      : coordinator_(coordinator),
        response_(response),
        open_(std::make_shared<Open>()) {
    MutexLock lock(&open_->mu);
    open_->call = this;
  }

  void Start(const JobSpec& spec, const JobCreator& by, Relist relist,
             MonotonicTime deadline, Now now) {
    wait_ = coordinator_->CreateJob(
        spec, deadline, now,
        [open = open_](absl::StatusOr<CreatedJob> created) {
          MutexLock lock(&open->mu);
          if (open->call != nullptr)
            std::exchange(open->call, nullptr)->Answer(std::move(created));
        },
        by, relist);
  }

 private:
  // Who answers first, the coordinator or the caller's cancellation, clears
  // `call`; the other one then finds nobody.
  struct Open {
    Mutex mu;
    CreateJobCall* call ABSL_GUARDED_BY(mu) = nullptr;
  };

  void Answer(absl::StatusOr<CreatedJob> created) {
    if (created.ok()) {
      *response_->mutable_job() = rpc::ToProto(*created->info);
      response_->set_attached(created->attached);
      response_->set_dataset_changed(created->dataset_changed);
      response_->set_consumers(created->consumers);
    }
    Finish(rpc::ToGrpc(created.status()));
  }
  void OnCancel() override {
    coordinator_->CancelWait(wait_);
    const std::shared_ptr<Open> open = open_;
    MutexLock lock(&open->mu);
    if (open->call != nullptr)
      std::exchange(open->call, nullptr)
          ->Finish(
              grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone"));
  }
  void OnDone() override { delete this; }

  Coordinator* const coordinator_;
  v1::CreateJobResponse* const response_;
  const std::shared_ptr<Open> open_;
  std::atomic<uint64_t> wait_ = 0;
};

// A value of a newer release is the default.
Relist RelistOf(v1::Relist relist) {
  switch (relist) {
    case v1::RELIST_ALWAYS:
      return Relist::kAlways;
    case v1::RELIST_NEVER:
      return Relist::kNever;
    default:
      return Relist::kAuto;
  }
}

grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

template <class Response>
class RejectedWrite : public grpc::ServerWriteReactor<Response> {
 public:
  explicit RejectedWrite(const absl::Status& status) {
    this->Finish(rpc::ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

template <class Request>
class RejectedRead : public grpc::ServerReadReactor<Request> {
 public:
  explicit RejectedRead(const absl::Status& status) {
    this->Finish(rpc::ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* CoordinatorService::Hello(
    grpc::CallbackServerContext* context, const v1::HelloRequest*,
    v1::HelloResponse* response) {
  if (absl::Status allowed = Admit("CoordinatorService/Hello", *context);
      !allowed.ok())
    return Reply(context, allowed);
  response->set_version(std::string(rpc::kLeatVersion));
  response->set_cluster(coordinator_->cluster());
  response->set_sequence(coordinator_->store().sequence());
  return Reply(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* CoordinatorService::CreateJob(
    grpc::CallbackServerContext* context, const v1::CreateJobRequest* request,
    v1::CreateJobResponse* response) {
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("CoordinatorService/CreateJob", *context);
  if (!caller.ok()) return Reply(context, caller.status());
  absl::StatusOr<JobSpec> spec = rpc::FromProto(request->spec());
  if (!spec.ok()) return Reply(context, spec.status());
  const Now now = Now::Of(*clock_);
  if (const absl::Status there = lists_.CheckThere(spec->pipeline, now);
      !there.ok())
    return Reply(context, there);
  auto* call = new CreateJobCall(coordinator_, response);
  call->Start(
      *spec,
      {.identity = caller->identity, .bounded = caller->role == Role::kTrainer},
      RelistOf(request->relist()), WaitUntil(*context, now), now);
  return call;
}

grpc::ServerUnaryReactor* CoordinatorService::GetJob(
    grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
    v1::GetJobResponse* response) {
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("CoordinatorService/GetJob", *context);
  if (!caller.ok()) return Reply(context, caller.status());
  absl::StatusOr<std::shared_ptr<const JobInfo>> job =
      InvalidArgument("GetJob: want a name or a plan hash");
  if (request->has_name()) {
    job = coordinator_->GetJob(request->name());
  } else if (request->has_plan_hash()) {
    const absl::StatusOr<Digest> hash =
        DigestOf("plan_hash", request->plan_hash());
    if (!hash.ok()) return Reply(context, hash.status());
    job = coordinator_->GetJob(*hash);
  }
  if (!job.ok()) return Reply(context, job.status());
  // Only workers read what it reads, and they ask by its hash.
  const bool whole = caller->role == Role::kWorker ||
                     (caller->role == Role::kOperator && !request->has_name());
  *response->mutable_job() =
      whole ? rpc::ToProto(**job) : rpc::ShownToProto(**job);
  if (const std::optional<Decoders> decoders =
          coordinator_->DecodersOf((*job)->plan_hash))
    *response->mutable_decoders() = ToProto(*decoders);
  return Reply(context, absl::OkStatus());
}

grpc::ServerWriteReactor<v1::GetIndexResponse>* CoordinatorService::GetIndex(
    grpc::CallbackServerContext* context, const v1::GetIndexRequest* request) {
  if (absl::Status allowed = Admit("CoordinatorService/GetIndex", *context);
      !allowed.ok())
    return new RejectedWrite<v1::GetIndexResponse>(allowed);
  return StartGetIndex(coordinator_, clock_, request->dataset_id(),
                       &index_reads_);
}

grpc::ServerReadReactor<v1::UploadIndexRequest>*
CoordinatorService::UploadIndex(grpc::CallbackServerContext* context,
                                v1::UploadIndexResponse*) {
  if (absl::Status allowed = Admit("CoordinatorService/UploadIndex", *context);
      !allowed.ok())
    return new RejectedRead<v1::UploadIndexRequest>(allowed);
  return StartUploadIndex(coordinator_, clock_, &whole_bytes_);
}

grpc::ServerUnaryReactor* CoordinatorService::GetIndexBlocks(
    grpc::CallbackServerContext* context,
    const v1::GetIndexBlocksRequest* request,
    v1::GetIndexBlocksResponse* response) {
  absl::Status status = Admit("CoordinatorService/GetIndexBlocks", *context);
  if (status.ok())
    status = AnswerIndexBlocks(*coordinator_, *request, response);
  return Reply(context, status);
}

grpc::ServerWriteReactor<v1::GetIndexBlockResponse>*
CoordinatorService::GetIndexBlock(grpc::CallbackServerContext* context,
                                  const v1::GetIndexBlockRequest* request) {
  if (absl::Status allowed =
          Admit("CoordinatorService/GetIndexBlock", *context);
      !allowed.ok())
    return new RejectedWrite<v1::GetIndexBlockResponse>(allowed);
  const absl::StatusOr<Digest> name = DigestOf("sha256", request->sha256());
  if (!name.ok())
    return new RejectedWrite<v1::GetIndexBlockResponse>(name.status());
  return StartGetIndexBlock(coordinator_, clock_, *name, request->unusable(),
                            &block_reads_);
}

grpc::ServerUnaryReactor* CoordinatorService::FindIndexBlocks(
    grpc::CallbackServerContext* context,
    const v1::FindIndexBlocksRequest* request,
    v1::FindIndexBlocksResponse* response) {
  absl::Status status = Admit("CoordinatorService/FindIndexBlocks", *context);
  if (status.ok())
    status =
        AnswerFindBlocks(coordinator_, Now::Of(*clock_), *request, response);
  return Reply(context, status);
}

grpc::ServerReadReactor<v1::PutIndexBlockRequest>*
CoordinatorService::PutIndexBlock(grpc::CallbackServerContext* context,
                                  v1::PutIndexBlockResponse*) {
  if (absl::Status allowed =
          Admit("CoordinatorService/PutIndexBlock", *context);
      !allowed.ok())
    return new RejectedRead<v1::PutIndexBlockRequest>(allowed);
  return StartPutIndexBlock(coordinator_, clock_, &block_writes_);
}

grpc::ServerUnaryReactor* CoordinatorService::FindListBlocks(
    grpc::CallbackServerContext* context,
    const v1::FindListBlocksRequest* request,
    v1::FindListBlocksResponse* response) {
  absl::Status status = Admit("CoordinatorService/FindListBlocks", *context);
  if (status.ok()) status = lists_.Find(*request, Now::Of(*clock_), response);
  return Reply(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::PutListBlock(
    grpc::CallbackServerContext* context,
    const v1::PutListBlockRequest* request, v1::PutListBlockResponse*) {
  absl::Status status = Admit("CoordinatorService/PutListBlock", *context);
  if (!status.ok()) return Reply(context, status);
  if (!list_writes_.Take()) return Reply(context, TransfersAreBusy());
  status = lists_.Put(*request, Now::Of(*clock_));
  list_writes_.Give();
  return Reply(context, status);
}

grpc::ServerBidiReactor<v1::WorkerSessionRequest, v1::WorkerSessionResponse>*
CoordinatorService::WorkerSession(grpc::CallbackServerContext* context) {
  using In = v1::WorkerSessionRequest;
  using Out = v1::WorkerSessionResponse;
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("CoordinatorService/WorkerSession", *context);
  if (!caller.ok()) return new rpc::RejectedStream<In, Out>(caller.status());
  return rpc::ServerStream<In, Out>::Start(
      context, kSessionQueue,
      [&, this](std::shared_ptr<rpc::Stream<Out>> stream) {
        access_->Watch(*caller, stream);
        return MakeWorkerSession(
            coordinator_, clock_, caller->identity,
            [context] { return context->IsCancelled(); }, std::move(stream));
      });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
CoordinatorService::ConsumerSession(grpc::CallbackServerContext* context) {
  using Raw = grpc::ByteBuffer;
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("CoordinatorService/ConsumerSession", *context);
  if (!caller.ok()) return new rpc::RejectedStream<Raw, Raw>(caller.status());
  return rpc::ServerStream<Raw, Raw>::Start(
      context, kSessionQueue,
      [&, this](std::shared_ptr<rpc::Stream<Raw>> stream) {
        access_->Watch(*caller, stream);
        return MakeConsumerSession(coordinator_, clock_, &spans_, &sheets_,
                                   std::move(stream));
      });
}

}  // namespace leat::server
