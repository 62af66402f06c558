// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/explain_service.h"

#include <string>
#include <utility>

#include "core/status.h"
#include "leat/v1/explain.grpc.pb.h"
#include "worker/job/job_table.h"
#include "worker/serving/call_queue.h"
#include "worker/serving/explainer.h"

namespace leat::worker {
namespace {

// For a thread that decodes a row now and then, and does not share memory.
ImageLimits WithoutBudget(ImageLimits limits) {
  limits.budget = nullptr;
  return limits;
}

}  // namespace

class ExplainCalls::Grpc final
    : public v1::ExplainService::WithCallbackMethod_LocateSamples<
          v1::ExplainService::WithCallbackMethod_ExplainRows<
              v1::ExplainService::Service>> {
 public:
  Grpc(Admit admit, JobTable* jobs, const ImageLimits& limits)
      : admit_(std::move(admit)), jobs_(jobs), limits_(WithoutBudget(limits)) {}
  ~Grpc() override { queue_->Close(); }

  grpc::ServerUnaryReactor* LocateSamples(
      grpc::CallbackServerContext* context,
      const v1::LocateSamplesRequest* request,
      v1::LocateSamplesResponse* response) override {
    return Begin("ExplainService/LocateSamples", context, request, response,
                 &Explainer::Locate);
  }
  grpc::ServerUnaryReactor* ExplainRows(
      grpc::CallbackServerContext* context,
      const v1::ExplainRowsRequest* request,
      v1::ExplainRowsResponse* response) override {
    return Begin("ExplainService/ExplainRows", context, request, response,
                 &Explainer::Explain);
  }

  CallQueue& queue() { return *queue_; }

 private:
  template <class Request, class Response>
  using Method = absl::Status (Explainer::*)(const Request&,
                                             const Explainer::Cancelled&,
                                             Response*);

  template <class Request, class Response>
  grpc::ServerUnaryReactor* Begin(std::string_view name,
                                  grpc::CallbackServerContext* context,
                                  const Request* request, Response* response,
                                  Method<Request, Response> method) {
    const auto call = std::make_shared<QueuedCallOf<Request, Response>>(
        context, request, response);
    grpc::ServerUnaryReactor* const reactor = call->reactor();
    if (const absl::Status status = admit_(name, *context); !status.ok())
      call->Finish(status);
    else if (queue_->Add(call).ok())
      jobs_->Get(call->request.plan_hash(), Epilogue::kWorker,
                 [queue = queue_, limits = limits_, call,
                  method](absl::StatusOr<JobTable::Runtime> job) {
                   if (!job.ok()) return queue->End(call, job.status());
                   queue->Answer(call, [=, job = *std::move(job)] {
                     return Answer(job, limits, method, call.get());
                   });
                 });
    return reactor;
  }

  template <class Request, class Response>
  static absl::Status Answer(const JobTable::Runtime& job,
                             const ImageLimits& limits,
                             Method<Request, Response> method,
                             QueuedCallOf<Request, Response>* call) {
    ASSIGN_OR_RETURN(Explainer explainer, Explainer::Create(job, limits));
    return (explainer.*method)(
        call->request, [call] { return !call->wanted(); }, &call->answer);
  }

  const Admit admit_;
  JobTable* const jobs_;
  const ImageLimits limits_;
  // The job table's callbacks may outlive the service.
  const std::shared_ptr<CallQueue> queue_ =
      std::make_shared<CallQueue>("explain", 1, kMaxExplainCalls);
};

ExplainCalls::ExplainCalls(Admit admit, JobTable* jobs,
                           const ImageLimits& limits)
    : grpc_(std::make_unique<Grpc>(std::move(admit), jobs, limits)) {}
ExplainCalls::~ExplainCalls() = default;

const absl::Status& ExplainCalls::started() const {
  return grpc_->queue().started();
}
grpc::Service* ExplainCalls::service() { return grpc_.get(); }
void ExplainCalls::Stop() { grpc_->queue().Stop(); }

}  // namespace leat::worker
