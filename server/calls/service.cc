// SPDX-License-Identifier: Apache-2.0
#include "server/calls/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/status.h"
#include "rpc/access/access.h"
#include "rpc/call/grpc_status.h"
#include "rpc/call/server_stream.h"
#include "rpc/wire/messages.h"
#include "server/calls/create_job.h"
#include "server/calls/listing_answer.h"
#include "server/calls/sessions.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

// A call without a deadline waits at most this long.
constexpr Duration kMaxWait = std::chrono::minutes(30);
// The answer, which gives the reason, is sent this long before the caller's
// deadline, so that even on a busy machine it arrives before gRPC ends the call
// without a reason.
constexpr Duration kMargin = std::chrono::seconds(2);

MonotonicTime WaitUntil(const CallContext& context, Now now) {
  const auto left = std::clamp<std::chrono::system_clock::duration>(
      context.deadline() - std::chrono::system_clock::now(),
      std::chrono::seconds(0), kMaxWait);
  return now.mono + left - std::min<Duration>(kMargin, left / 8);
}

// A value of a newer release becomes the default.
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

UnaryReactor* CoordinatorService::Hello(CallContext* context,
                                        const v1::HelloRequest*,
                                        v1::HelloResponse* response) {
  return Handle(access_, "CoordinatorService/Hello", context, [&] {
    response->set_version(std::string(rpc::kLeatVersion));
    response->set_cluster(coordinator_->cluster());
    response->set_sequence(coordinator_->store().sequence());
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::CreateJobResponse>* CoordinatorService::CreateJob(
    CallContext* context, const v1::CreateJobRequest* request) {
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("CoordinatorService/CreateJob", *context);
  const Now now = Now::Of(*clock_);
  const auto wanted = [&]() -> absl::StatusOr<JobSpec> {
    RETURN_IF_ERROR(caller.status());
    ASSIGN_OR_RETURN(JobSpec spec, rpc::FromProto(request->spec()));
    for (size_t i = 0; i < NumSources(spec); ++i)
      RETURN_IF_ERROR(lists_.CheckThere(PipelineOf(spec, i), now));
    return spec;
  };
  const absl::StatusOr<JobSpec> spec = wanted();
  if (!spec.ok())
    return new RejectedWrite<v1::CreateJobResponse>(spec.status());
  return StartCreateJob(
      coordinator_, *spec,
      {.identity = caller->identity, .bounded = caller->role == Role::kTrainer},
      RelistOf(request->relist()), WaitUntil(*context, now), now);
}

UnaryReactor* CoordinatorService::GetJob(CallContext* context,
                                         const v1::GetJobRequest* request,
                                         v1::GetJobResponse* response) {
  return Handle(access_, "CoordinatorService/GetJob", context,
                [&](const rpc::Caller& caller) -> absl::Status {
                  absl::StatusOr<std::shared_ptr<const JobInfo>> job =
                      InvalidArgument("GetJob: want a name or a plan hash");
                  if (request->has_name()) {
                    job = coordinator_->GetJob(request->name());
                  } else if (request->has_plan_hash()) {
                    ASSIGN_OR_RETURN(
                        const Digest hash,
                        DigestOf("plan_hash", request->plan_hash()));
                    job = coordinator_->GetJob(hash);
                  }
                  RETURN_IF_ERROR(job.status());
                  // Only workers read its data, and they ask by plan hash.
                  const bool whole =
                      caller.role == Role::kWorker ||
                      (caller.role == Role::kOperator && !request->has_name());
                  *response->mutable_job() =
                      whole ? rpc::ToProto(**job) : rpc::ShownToProto(**job);
                  if (const std::optional<Decoders> decoders =
                          coordinator_->DecodersOf((*job)->plan_hash))
                    *response->mutable_decoders() = ToProto(*decoders);
                  return absl::OkStatus();
                });
}

UnaryReactor* CoordinatorService::UploadIndex(
    CallContext* context, const v1::UploadIndexRequest* request,
    v1::UploadIndexResponse*) {
  return HandleLater(access_, "CoordinatorService/UploadIndex", context,
                     [&](Coordinator::Done done) {
                       TakeListingAnswer(coordinator_, Now::Of(*clock_),
                                         *request, done);
                     });
}

UnaryReactor* CoordinatorService::GetIndexBlocks(
    CallContext* context, const v1::GetIndexBlocksRequest* request,
    v1::GetIndexBlocksResponse* response) {
  return Handle(access_, "CoordinatorService/GetIndexBlocks", context, [&] {
    return AnswerIndexBlocks(coordinator_, Now::Of(*clock_), *request,
                             &block_reads_, response);
  });
}

grpc::ServerWriteReactor<v1::GetIndexBlockResponse>*
CoordinatorService::GetIndexBlock(CallContext* context,
                                  const v1::GetIndexBlockRequest* request) {
  using Rejected = RejectedWrite<v1::GetIndexBlockResponse>;
  if (const auto caller =
          access_->Admit("CoordinatorService/GetIndexBlock", *context);
      !caller.ok())
    return new Rejected(caller.status());
  const absl::StatusOr<Digest> name = DigestOf("sha256", request->sha256());
  if (!name.ok()) return new Rejected(name.status());
  return StartGetIndexBlock(coordinator_, clock_, *name, request->unusable(),
                            &block_reads_);
}

UnaryReactor* CoordinatorService::FindIndexBlocks(
    CallContext* context, const v1::FindIndexBlocksRequest* request,
    v1::FindIndexBlocksResponse* response) {
  return Handle(access_, "CoordinatorService/FindIndexBlocks", context, [&] {
    return AnswerFindBlocks(coordinator_, Now::Of(*clock_), *request, response);
  });
}

grpc::ServerReadReactor<v1::PutIndexBlockRequest>*
CoordinatorService::PutIndexBlock(CallContext* context,
                                  v1::PutIndexBlockResponse*) {
  if (const auto caller =
          access_->Admit("CoordinatorService/PutIndexBlock", *context);
      !caller.ok())
    return new RejectedRead<v1::PutIndexBlockRequest>(caller.status());
  return StartPutIndexBlock(coordinator_, clock_, &block_writes_);
}

UnaryReactor* CoordinatorService::FindListBlocks(
    CallContext* context, const v1::FindListBlocksRequest* request,
    v1::FindListBlocksResponse* response) {
  return Handle(access_, "CoordinatorService/FindListBlocks", context, [&] {
    return lists_.Find(*request, Now::Of(*clock_), response);
  });
}

UnaryReactor* CoordinatorService::PutListBlock(
    CallContext* context, const v1::PutListBlockRequest* request,
    v1::PutListBlockResponse*) {
  return Handle(access_, "CoordinatorService/PutListBlock", context,
                [&]() -> absl::Status {
                  if (!list_writes_.Take()) return TransfersAreBusy();
                  const absl::Status put =
                      lists_.Put(*request, Now::Of(*clock_));
                  list_writes_.Give();
                  return put;
                });
}

grpc::ServerBidiReactor<v1::WorkerSessionRequest, v1::WorkerSessionResponse>*
CoordinatorService::WorkerSession(CallContext* context) {
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
CoordinatorService::ConsumerSession(CallContext* context) {
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
