// SPDX-License-Identifier: Apache-2.0
#include "client/api/collect_spans.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/api/explain.h"
#include "client/coordinator/message_json.h"
#include "core/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "leat/v1/trace.grpc.pb.h"
#include "rpc/call/call_set.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/times.h"

namespace leat::client {
namespace {

constexpr absl::Duration kMaxCollect = absl::Seconds(60);
constexpr size_t kMaxSpansOfOne = 20'000;  // trace.proto

// The calls in flight, and their completion.
struct Collection {
  struct Call {
    v1::WorkerRef worker;  // without a name: the coordinator
    v1::CollectSpansRequest request;
    std::unique_ptr<v1::TraceService::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::CollectSpansResponse>>
        reader;
    v1::CollectSpansResponse response;
    grpc::Status status;
  };
  std::vector<std::unique_ptr<Call>> calls;
  grpc::CompletionQueue queue;

  // Waits for all calls. Each has a deadline.
  void Wait() {
    void* call = nullptr;
    bool ok = false;
    for (size_t left = calls.size(); left > 0 && queue.Next(&call, &ok);)
      --left;
  }
};

void StartCalls(const rpc::Security& security, Duration timeout,
                Collection* collection) {
  for (const auto& each : collection->calls) {
    Collection::Call& call = *each;
    call.stub = v1::TraceService::NewStub(
        rpc::MakeChannel(call.worker.address(), security));
    rpc::PrepareCall(security, timeout, &call.context);
    call.reader = call.stub->AsyncCollectSpans(&call.context, call.request,
                                               &collection->queue);
    call.reader->Finish(&call.response, &call.status, &call);
  }
}

}  // namespace

absl::StatusOr<nlohmann::json> CollectSpans(const JobData& job,
                                            absl::Duration duration,
                                            double ratio,
                                            absl::Duration timeout) {
  if (duration <= absl::ZeroDuration() || duration > kMaxCollect)
    return InvalidArgument("a trace of {}: want more than 0, up to {}",
                           absl::FormatDuration(duration),
                           absl::FormatDuration(kMaxCollect));
  if (!(ratio > 0 && ratio <= 1))
    return InvalidArgument("a trace of {} of the steps: want up to 1", ratio);
  Control& control = job.connection()->control;
  ASSIGN_OR_RETURN(const std::vector<v1::WorkerRef> workers,
                   LiveWorkers(control, kMaxWorkersTraced));
  if (workers.empty()) return Unavailable("no worker is ready");
  v1::CollectSpansRequest request;
  const auto& plan_hash = job.info().plan_hash;
  request.set_plan_hash(plan_hash.data(), plan_hash.size());
  *request.mutable_duration() =
      rpc::ToProto(absl::ToChronoNanoseconds(duration));
  request.set_ratio(ratio);
  request.set_max_spans(static_cast<uint32_t>(
      std::min(kMaxSpansOfOne, kMaxSpansCollected / workers.size())));
  Collection collection;
  for (const v1::WorkerRef& worker : workers) {
    collection.calls.push_back(std::make_unique<Collection::Call>());
    collection.calls.back()->worker = worker;
    collection.calls.back()->request = request;
  }
  collection.calls.push_back(std::make_unique<Collection::Call>());
  collection.calls.back()->worker.set_address(control.address());
  request.set_max_spans(static_cast<uint32_t>(kMaxSpansOfOne));
  collection.calls.back()->request = std::move(request);
  StartCalls(control.security(), absl::ToChronoNanoseconds(duration + timeout),
             &collection);
  collection.Wait();
  nlohmann::json all = nlohmann::json::array();
  absl::Status last;
  size_t answered = 0;
  const WhyUnreached why = LookAt(control.security());
  for (const auto& call : collection.calls) {
    const bool is_worker = !call->worker.name().empty();
    nlohmann::json one = {
        {is_worker ? "worker" : "coordinator",
         is_worker ? call->worker.name() : call->worker.address()},
        {"address", call->worker.address()}};
    const absl::Status status = rpc::FromGrpc(call->status);
    if (status.ok()) {
      if (is_worker) ++answered;
      one.update(ToJsonNumbers(call->response));
    } else {
      const absl::Status error =
          is_worker ? WorkerError(call->worker, status, why) : status;
      if (is_worker) last = error;
      one["error"] = std::string(Message(error));
    }
    all.push_back(std::move(one));
  }
  if (answered == 0) return last;
  return all;
}

}  // namespace leat::client
