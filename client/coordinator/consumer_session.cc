// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/consumer_session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "client/batch/revocable.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"

namespace leat::client {
namespace {

// An invalid code, or that of OK, becomes kUnknown.
absl::Status FailureOf(const v1::JobFailure& failure) {
  const auto code = static_cast<absl::StatusCode>(failure.code());
  if (failure.code() > static_cast<int>(absl::StatusCode::kOk) &&
      failure.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated))
    return absl::Status(code, failure.message());
  return absl::UnknownError(failure.message());
}

}  // namespace

// The state that a stream's callbacks use.
struct Session::Shared {
  explicit Shared(const Callbacks& callbacks)
      : on_assignment(callbacks.on_assignment),
        on_failure(callbacks.on_failure),
        on_lost(callbacks.on_lost),
        on_trace(callbacks.on_trace),
        on_sheet(callbacks.on_sheet),
        on_settled(callbacks.on_settled) {}

  Revocable<const v1::Assignment&> on_assignment;
  Revocable<const absl::Status&> on_failure;
  Revocable<const absl::Status&> on_lost;
  Revocable<const v1::TraceConsumer&> on_trace;
  Revocable<const v1::WantSheet&> on_sheet;
  Revocable<> on_settled;
  Mutex mu;
  CondVar ended;  // the stream, or the wait for the verdict
  bool stopped ABSL_GUARDED_BY(mu) = false;
  bool open ABSL_GUARDED_BY(mu) = false;   // a stream is open or opening
  bool heard ABSL_GUARDED_BY(mu) = false;  // it has received a message
  // Takes the verdict from a message that comes after `stopped`.
  void Judge(const v1::ConsumerSessionResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (response.has_failure()) failure = FailureOf(response.failure());
    if (!response.has_failure() && !response.settled()) return;
    judged = true;
    ended.NotifyAll();
  }

  bool judged ABSL_GUARDED_BY(mu) = false;                  // after `stopped`
  std::optional<absl::Status> failure ABSL_GUARDED_BY(mu);  // the same
};

// Receives the messages of one stream.
class Session::SharedReceiver final : public Receiver {
 public:
  explicit SharedReceiver(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)) {}

  void OnMessage(v1::ConsumerSessionResponse response) override {
    {
      MutexLock lock(&shared_->mu);
      shared_->heard = true;
      if (shared_->stopped) return shared_->Judge(response);
    }
    if (response.has_assignment())
      shared_->on_assignment.Call(response.assignment());
    if (response.has_failure())
      shared_->on_failure.Call(FailureOf(response.failure()));
    if (response.has_trace()) shared_->on_trace.Call(response.trace());
    if (response.has_sheet()) shared_->on_sheet.Call(response.sheet());
    if (response.settled()) shared_->on_settled.Call();
  }

  void OnClosed(const absl::Status& status) override {
    {
      MutexLock lock(&shared_->mu);
      shared_->open = false;
      shared_->ended.NotifyAll();
      if (shared_->stopped) return;
    }
    shared_->on_lost.Call(status.ok()
                              ? Unavailable("the coordinator ended the session")
                              : status);
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

Session::Session(const Config& config, v1::OpenConsumer open,
                 Callbacks callbacks, Opener opener)
    : config_(config),
      open_(std::move(open)),
      callbacks_(std::move(callbacks)),
      opener_(std::move(opener)),
      shared_(std::make_shared<Shared>(callbacks_)),
      backoff_(config.backoff_min) {}

Session::~Session() { Stop(); }

MonotonicTime Session::Tick(MonotonicTime now) {
  bool open = false;
  {
    MutexLock lock(&shared_->mu);
    if (shared_->stopped) return MonotonicTime::max();
    open = shared_->open;
    if (std::exchange(shared_->heard, false)) backoff_ = config_.backoff_min;
  }
  if (open) {
    SendSheet();
    const MonotonicTime spans_due = SendSpans(now);
    std::optional<v1::UnreachedWorkers> unreached;
    if (callbacks_.unreached) unreached = callbacks_.unreached();
    const bool settles = !settling_ && Settles(/*at_stop=*/false);
    if (now < next_report_ && !unreached && !settles)
      return std::min(next_report_, spans_due);
    next_report_ = now + config_.report_interval;
    v1::ConsumerSessionRequest request;
    if (unreached) *request.mutable_unreached() = *std::move(unreached);
    *request.mutable_stats() = callbacks_.stats();
    request.set_settle(settles);
    // A lost report does not matter.
    settling_ =
        (stream_->Send(std::move(request)).ok() && settles) || settling_;
    return std::min(next_report_, spans_due);
  }
  if (stream_) {  // it has ended
    stream_.reset();
    const double part = config_.random ? 1 - config_.random() / 2 : 1;
    next_attempt_ = now + std::chrono::duration_cast<Duration>(backoff_ * part);
    backoff_ = std::min(config_.backoff_max, backoff_ * 2);
  }
  if (now < next_attempt_) return next_attempt_;
  {
    MutexLock lock(&shared_->mu);
    shared_->open = true;
  }
  settling_ = false;
  stream_ = opener_(std::make_shared<SharedReceiver>(shared_));
  v1::ConsumerSessionRequest request;
  *request.mutable_open() = open_;
  stream_->Send(std::move(request)).IgnoreError();
  next_report_ = now + config_.report_interval;
  return next_report_;
}

// If the queue is full, the preview is lost; the viewer requests another.
void Session::SendSheet() {
  if (!callbacks_.sheet) return;
  std::optional<v1::RowsSheet> sheet = callbacks_.sheet();
  if (!sheet) return;
  v1::ConsumerSessionRequest request;
  *request.mutable_sheet() = *std::move(sheet);
  stream_->Send(std::move(request)).IgnoreError();
}

// If the queue is full, spans are lost, which the collection does not count.
MonotonicTime Session::SendSpans(MonotonicTime now) {
  if (!callbacks_.spans) return MonotonicTime::max();
  SpanReporter::Due due = callbacks_.spans(now);
  for (v1::ConsumerSpans& spans : due.messages) {
    v1::ConsumerSessionRequest request;
    *request.mutable_spans() = std::move(spans);
    stream_->Send(std::move(request)).IgnoreError();
  }
  return due.next;
}

// Sends the last report. The coordinator ends the stream once it has read it;
// the waits are bounded, so that one that does not answer delays nothing.
void Session::SayLast() {
  v1::ConsumerSessionRequest request;
  *request.mutable_stats() = callbacks_.stats();
  const bool settles = Settles(/*at_stop=*/true);
  request.set_settle(settles && !settling_);
  if (!stream_->Send(std::move(request)).ok()) return;
  if (settles) {
    const MonotonicTime until = Clock::Real().Now() + config_.farewell;
    MutexLock lock(&shared_->mu);
    while (shared_->open && !shared_->judged &&
           shared_->ended.WaitUntil(&shared_->mu, until)) {
    }
  }
  // The coordinator ends the stream when it has read all.
  stream_->Close(absl::OkStatus());
  std::optional<absl::Status> failure;
  {
    const MonotonicTime until = Clock::Real().Now() + config_.farewell;
    MutexLock lock(&shared_->mu);
    while (shared_->open && shared_->ended.WaitUntil(&shared_->mu, until)) {
    }
    failure = shared_->failure;
  }
  if (failure)
    LOG_WARN("job.given_up job={} reason=\"{}\"", open_.job(),
             Message(*failure));
}

bool Session::Settles(bool at_stop) const {
  return callbacks_.settles && callbacks_.settles(at_stop);
}

void Session::Stop() {
  bool open = false;
  {
    MutexLock lock(&shared_->mu);
    if (std::exchange(shared_->stopped, true)) return;
    open = shared_->open;
  }
  shared_->on_assignment.Set(nullptr);
  shared_->on_failure.Set(nullptr);
  shared_->on_lost.Set(nullptr);
  shared_->on_trace.Set(nullptr);
  shared_->on_sheet.Set(nullptr);
  shared_->on_settled.Set(nullptr);
  if (stream_ && open) SayLast();
  if (stream_) stream_->Cancel();
  stream_.reset();
}

}  // namespace leat::client
