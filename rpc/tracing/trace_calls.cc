// SPDX-License-Identifier: Apache-2.0
#include "rpc/tracing/trace_calls.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/v1/trace.grpc.pb.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/times.h"

namespace leat::rpc {
namespace {

constexpr size_t kTracePlanHashBytes = 32;

absl::Status TraceStopping() { return Unavailable("the process is stopping"); }

std::string BigEndian(const TraceId& id) {
  std::string bytes;
  for (const uint64_t half : {id.high, id.low})
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(half >> shift & 0xff));
  return bytes;
}

absl::StatusOr<Duration> DurationOf(const v1::CollectSpansRequest& request) {
  if (request.plan_hash().size() != kTracePlanHashBytes)
    return InvalidArgument("a plan hash of {} bytes: want {}",
                           request.plan_hash().size(), kTracePlanHashBytes);
  if (!(request.ratio() >= 0 && request.ratio() <= 1))
    return InvalidArgument("ratio {}: want 0 to 1", request.ratio());
  if (request.max_spans() < 1 || request.max_spans() > TraceCalls::kMaxSpans)
    return InvalidArgument("max_spans {}: want 1 to {}", request.max_spans(),
                           TraceCalls::kMaxSpans);
  const Duration duration = FromProto(request.duration());
  if (duration < Duration(0) ||
      duration > std::chrono::seconds(TraceCalls::kMaxSeconds))
    return InvalidArgument("duration of {} s: want 0 to {} s",
                           request.duration().seconds(),
                           TraceCalls::kMaxSeconds);
  return duration;
}

class ListenedSpans final : public SpanCollection {
 public:
  ListenedSpans(Tracer* tracer, std::shared_ptr<SpanBuffer> buffer)
      : tracer_(tracer), buffer_(std::move(buffer)) {}
  ~ListenedSpans() override { tracer_->Leave(buffer_); }

  void Finish(v1::CollectSpansResponse* to) override {
    tracer_->Leave(buffer_);
    for (const Span& span :
         buffer_->Take(TraceCalls::kMaxSpans, 0, MonotonicTime::min()))
      SpanToProto(span, to->add_spans());
    to->set_dropped(buffer_->dropped());
  }

 private:
  Tracer* const tracer_;
  const std::shared_ptr<SpanBuffer> buffer_;
};

}  // namespace

void SpanToProto(const Span& span, v1::CollectedSpan* to) {
  to->set_trace_id(BigEndian(span.of->trace));
  to->set_id(span.id);
  to->set_parent(span.parent);
  to->set_kind(static_cast<v1::SpanKind>(span.kind));
  to->set_begin_ns(span.begin_ns);
  to->set_end_ns(span.end_ns);
  to->set_thread(span.thread);
  to->set_rows(span.rows);
  to->set_failed(span.failed);
  to->set_epoch(span.of->epoch);
  to->set_step(span.of->step);
  to->set_consumer(span.of->consumer);
  to->set_worker(span.worker);
}

std::unique_ptr<SpanCollection> CollectFrom(
    Tracer* tracer, const v1::CollectSpansRequest& request) {
  std::shared_ptr<SpanBuffer> buffer = tracer->Listen(
      {.plan_hash = request.plan_hash(), .ratio = request.ratio()},
      request.max_spans());
  if (buffer == nullptr) return nullptr;
  return std::make_unique<ListenedSpans>(tracer, std::move(buffer));
}

class TraceCalls::Grpc final
    : public v1::TraceService::WithCallbackMethod_CollectSpans<
          v1::TraceService::Service> {
 public:
  Grpc(Admit admit, TraceCalls::Begin begin, const Clock& clock)
      : admit_(std::move(admit)),
        begin_(std::move(begin)),
        clock_(clock),
        started_(StartThread(
            "trace", [this] { Run(); }, &thread_)) {}
  ~Grpc() override {
    Stop();
    if (thread_.joinable()) thread_.join();
  }

  grpc::ServerUnaryReactor* CollectSpans(
      grpc::CallbackServerContext* context,
      const v1::CollectSpansRequest* request,
      v1::CollectSpansResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    absl::Status status = admit_("TraceService/CollectSpans", *context);
    if (status.ok()) status = Begin(*request, response, reactor);
    if (!status.ok()) reactor->Finish(ToGrpc(status));
    return reactor;
  }

  const absl::Status& started() const { return started_; }

  void Stop() {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }

 private:
  // gRPC owns `response`, which must not be touched after Finish.
  struct Call {
    MonotonicTime end;
    std::unique_ptr<SpanCollection> collection;
    v1::CollectSpansResponse* response;
    grpc::ServerUnaryReactor* reactor;
  };

  // The collection starts without the lock.
  absl::Status Begin(const v1::CollectSpansRequest& request,
                     v1::CollectSpansResponse* response,
                     grpc::ServerUnaryReactor* reactor) {
    ASSIGN_OR_RETURN(const Duration duration, DurationOf(request));
    {
      MutexLock lock(&mu_);
      if (stopping_) return TraceStopping();
      if (under_way_ >= kMaxCalls)
        return Unavailable("{} callers collect spans: the limit", kMaxCalls);
      ++under_way_;
    }
    std::unique_ptr<SpanCollection> collection = begin_(request);
    MutexLock lock(&mu_);
    if (collection == nullptr || stopping_) {
      --under_way_;
      return stopping_ ? TraceStopping()
                       : Unavailable("others collect spans: the limit");
    }
    calls_.push_back(
        {clock_.Now() + duration, std::move(collection), response, reactor});
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  // Returns the calls whose time is over; all, if this stops. Empty: it has
  // stopped.
  std::vector<Call> TakeOver() {
    MutexLock lock(&mu_);
    while (true) {
      MonotonicTime next = MonotonicTime::max();
      const MonotonicTime now = clock_.Now();
      std::vector<Call> over;
      for (auto it = calls_.begin(); it != calls_.end();) {
        if (stopping_ || it->end <= now) {
          over.push_back(std::move(*it));
          it = calls_.erase(it);
        } else {
          next = std::min(next, it->end);
          ++it;
        }
      }
      if (!over.empty() || stopping_) return over;
      if (next == MonotonicTime::max())
        changed_.Wait(&mu_);
      else
        changed_.WaitUntil(&mu_, next);
    }
  }

  void Run() {
    while (true) {
      std::vector<Call> over = TakeOver();
      if (over.empty()) return;
      for (Call& call : over) {
        const bool stopping = Stopping();
        if (!stopping) call.collection->Finish(call.response);
        call.collection.reset();
        {
          MutexLock lock(&mu_);
          --under_way_;
        }
        call.reactor->Finish(stopping ? ToGrpc(TraceStopping())
                                      : grpc::Status::OK);
      }
    }
  }
  bool Stopping() {
    MutexLock lock(&mu_);
    return stopping_;
  }

  const Admit admit_;
  const TraceCalls::Begin begin_;
  const Clock& clock_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mu_);
  size_t under_way_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;
  const absl::Status started_;
};

TraceCalls::TraceCalls(Admit admit, Begin begin, const Clock& clock)
    : grpc_(std::make_unique<Grpc>(std::move(admit), std::move(begin), clock)) {
}
TraceCalls::~TraceCalls() = default;

const absl::Status& TraceCalls::started() const { return grpc_->started(); }
grpc::Service* TraceCalls::service() { return grpc_.get(); }
void TraceCalls::Stop() { grpc_->Stop(); }

}  // namespace leat::rpc
