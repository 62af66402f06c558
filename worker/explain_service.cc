// SPDX-License-Identifier: Apache-2.0
#include "worker/explain_service.h"

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/v1/explain.grpc.pb.h"
#include "rpc/status.h"
#include "worker/explainer.h"
#include "worker/job_table.h"

namespace leat::worker {
namespace {

absl::Status Stopping() { return Unavailable("the worker is draining"); }

// A call under way. gRPC owns its messages, which must not be touched after
// Finish. Only the first Finish has an effect.
class Call {
 public:
  explicit Call(grpc::CallbackServerContext* context)
      : context_(context), reactor_(context->DefaultReactor()) {}
  virtual ~Call() = default;

  grpc::ServerUnaryReactor* reactor() { return reactor_; }
  // With a lock held all the way, so that the messages are there for it.
  void Finish(const absl::Status& status) {
    MutexLock lock(&mu_);
    if (std::exchange(finished_, true)) return;
    if (status.ok()) TakeAnswer();
    reactor_->Finish(rpc::ToGrpc(status));
  }
  bool wanted() {
    MutexLock lock(&mu_);
    return !finished_ && !context_->IsCancelled();
  }
  // On the thread that answers.
  virtual absl::Status Answer(Explainer& explainer) = 0;

 private:
  // Moves what Answer made into gRPC's message.
  virtual void TakeAnswer() = 0;

  grpc::CallbackServerContext* const context_;
  grpc::ServerUnaryReactor* const reactor_;
  Mutex mu_;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

template <class Request, class Response>
class CallOf final : public Call {
 public:
  using Method = absl::Status (Explainer::*)(const Request&,
                                             const Explainer::Cancelled&,
                                             Response*);
  CallOf(grpc::CallbackServerContext* context, const Request* request,
         Response* response, Method method)
      : Call(context),
        request_(*request),
        response_(response),
        method_(method) {}

  absl::Status Answer(Explainer& explainer) override {
    return (explainer.*method_)(
        request_, [this] { return !wanted(); }, &answer_);
  }

 private:
  void TakeAnswer() override { response_->Swap(&answer_); }

  const Request request_;
  Response answer_;
  Response* const response_;  // gRPC's
  const Method method_;
};

struct Ready {
  std::shared_ptr<Call> call;
  JobTable::Runtime job;
};

}  // namespace

class ExplainCalls::Grpc final
    : public v1::ExplainService::WithCallbackMethod_LocateSamples<
          v1::ExplainService::WithCallbackMethod_ExplainRows<
              v1::ExplainService::Service>> {
 public:
  Grpc(Admit admit, JobTable* jobs, const ImageLimits& limits)
      : admit_(std::move(admit)),
        jobs_(jobs),
        limits_(limits),
        started_(StartThread(
            "explain", [this] { Work(); }, &thread_)) {}
  ~Grpc() override {
    Stop();
    shared_->ready.Close();
    if (thread_.joinable()) thread_.join();
  }

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

  const absl::Status& started() const { return started_; }

  void Stop() {
    std::set<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&shared_->mu);
      shared_->stopping = true;
      calls = shared_->calls;
    }
    for (const auto& call : calls) call->Finish(Stopping());
  }

 private:
  // What the job table's callbacks share with the service, and may outlive it.
  struct Shared {
    BoundedQueue<Ready> ready{kMaxExplainCalls};
    Mutex mu;
    bool stopping ABSL_GUARDED_BY(mu) = false;
    std::set<std::shared_ptr<Call>> calls ABSL_GUARDED_BY(mu);

    absl::Status Add(const std::shared_ptr<Call>& call) {
      MutexLock lock(&mu);
      if (stopping) return Stopping();
      if (calls.size() >= kMaxExplainCalls)
        return Unavailable("{} such calls are under way: the limit",
                           calls.size());
      calls.insert(call);
      return absl::OkStatus();
    }
    void End(const std::shared_ptr<Call>& call, const absl::Status& status) {
      call->Finish(status);
      MutexLock lock(&mu);
      calls.erase(call);
    }
  };

  template <class Request, class Response>
  grpc::ServerUnaryReactor* Begin(
      std::string_view name, grpc::CallbackServerContext* context,
      const Request* request, Response* response,
      typename CallOf<Request, Response>::Method method) {
    const auto call = std::make_shared<CallOf<Request, Response>>(
        context, request, response, method);
    grpc::ServerUnaryReactor* const reactor = call->reactor();
    absl::Status status = admit_(name, *context);
    if (status.ok()) status = shared_->Add(call);
    if (!status.ok()) {
      call->Finish(status);
      return reactor;
    }
    jobs_->Get(request->plan_hash(), Finish::kWorker,
               [shared = shared_, call](absl::StatusOr<JobTable::Runtime> job) {
                 if (!job.ok()) return shared->End(call, job.status());
                 if (!shared->ready.TryPush({call, *std::move(job)}))
                   shared->End(call, Stopping());
               });
    return reactor;
  }

  void Work() {
    while (std::optional<Ready> next =
               shared_->ready.Pop(MonotonicTime::max())) {
      if (!next->call->wanted()) {
        shared_->End(next->call, ::leat::Cancelled("nobody waits"));
        continue;
      }
      absl::StatusOr<Explainer> explainer =
          Explainer::Create(std::move(next->job), limits_);
      shared_->End(next->call, explainer.ok() ? next->call->Answer(*explainer)
                                              : explainer.status());
    }
  }

  const Admit admit_;
  JobTable* const jobs_;
  const ImageLimits limits_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
  const absl::Status started_;
};

ExplainCalls::ExplainCalls(Admit admit, JobTable* jobs,
                           const ImageLimits& limits)
    : grpc_(std::make_unique<Grpc>(std::move(admit), jobs, limits)) {}
ExplainCalls::~ExplainCalls() = default;

const absl::Status& ExplainCalls::started() const { return grpc_->started(); }
grpc::Service* ExplainCalls::service() { return grpc_.get(); }
void ExplainCalls::Stop() { grpc_->Stop(); }

}  // namespace leat::worker
