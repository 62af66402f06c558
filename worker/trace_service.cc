// SPDX-License-Identifier: Apache-2.0
#include "worker/trace_service.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/v1/trace.grpc.pb.h"
#include "rpc/status.h"

namespace leat::worker {
namespace {

constexpr size_t kTracePlanHashBytes = 32;

absl::Status TraceStopping() { return Unavailable("the worker is draining"); }

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
  const auto& duration = request.duration();
  const bool fits = duration.seconds() >= 0 && duration.nanos() >= 0 &&
                    duration.nanos() < 1'000'000'000 &&
                    (duration.seconds() < TraceCalls::kMaxSeconds ||
                     (duration.seconds() == TraceCalls::kMaxSeconds &&
                      duration.nanos() == 0));
  if (!fits)
    return InvalidArgument("duration of {} s: want 0 to {} s",
                           duration.seconds(), TraceCalls::kMaxSeconds);
  return std::chrono::seconds(duration.seconds()) +
         std::chrono::nanoseconds(duration.nanos());
}

void AddSpan(const Span& span, v1::CollectSpansResponse* to) {
  v1::CollectedSpan& proto = *to->add_spans();
  proto.set_trace_id(BigEndian(span.of->trace));
  proto.set_id(span.id);
  proto.set_parent(span.parent);
  proto.set_kind(static_cast<v1::SpanKind>(span.kind));
  proto.set_begin_ns(span.begin_ns);
  proto.set_end_ns(span.end_ns);
  proto.set_thread(span.thread);
  proto.set_rows(span.rows);
  proto.set_failed(span.failed);
  proto.set_epoch(span.of->epoch);
  proto.set_step(span.of->step);
  proto.set_consumer(span.of->consumer);
}

}  // namespace

class TraceCalls::Grpc final
    : public v1::TraceService::WithCallbackMethod_CollectSpans<
          v1::TraceService::Service> {
 public:
  Grpc(Admit admit, Tracer* tracer, const Clock& clock)
      : admit_(std::move(admit)),
        tracer_(tracer),
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
    if (!status.ok()) reactor->Finish(rpc::ToGrpc(status));
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
    std::shared_ptr<SpanBuffer> buffer;
    v1::CollectSpansResponse* response;
    grpc::ServerUnaryReactor* reactor;
  };

  absl::Status Begin(const v1::CollectSpansRequest& request,
                     v1::CollectSpansResponse* response,
                     grpc::ServerUnaryReactor* reactor) {
    ASSIGN_OR_RETURN(const Duration duration, DurationOf(request));
    MutexLock lock(&mu_);
    if (stopping_) return TraceStopping();
    std::shared_ptr<SpanBuffer> buffer;
    if (calls_.size() < kMaxCalls)
      buffer = tracer_->Listen({request.plan_hash(), request.ratio()},
                               request.max_spans());
    if (buffer == nullptr)
      return Unavailable("{} callers collect spans: the limit", calls_.size());
    calls_.push_back(
        {clock_.Now() + duration, std::move(buffer), response, reactor});
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  // Those whose time is over; all, when this stops. Empty: it has stopped.
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
      const std::vector<Call> over = TakeOver();
      if (over.empty()) return;
      for (const Call& call : over) {
        tracer_->Leave(call.buffer);
        if (Stopping()) {
          call.reactor->Finish(rpc::ToGrpc(TraceStopping()));
          continue;
        }
        for (const Span& span :
             call.buffer->Take(kMaxSpans, 0, MonotonicTime::min()))
          AddSpan(span, call.response);
        call.response->set_dropped(call.buffer->dropped());
        call.reactor->Finish(grpc::Status::OK);
      }
    }
  }
  bool Stopping() {
    MutexLock lock(&mu_);
    return stopping_;
  }

  const Admit admit_;
  Tracer* const tracer_;
  const Clock& clock_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
  const absl::Status started_;
};

TraceCalls::TraceCalls(Admit admit, Tracer* tracer, const Clock& clock)
    : grpc_(std::make_unique<Grpc>(std::move(admit), tracer, clock)) {}
TraceCalls::~TraceCalls() = default;

const absl::Status& TraceCalls::started() const { return grpc_->started(); }
grpc::Service* TraceCalls::service() { return grpc_.get(); }
void TraceCalls::Stop() { grpc_->Stop(); }

}  // namespace leat::worker
