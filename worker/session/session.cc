// SPDX-License-Identifier: Apache-2.0
#include "worker/session/session.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/call/client_stream.h"
#include "rpc/tls/tls_probe.h"
#include "rpc/wire/times.h"
#include "worker/session/coordinator_client.h"
#include "worker/session/heartbeat_parts.h"

namespace leat::worker {
namespace {

using Request = v1::WorkerSessionRequest;
using Response = v1::WorkerSessionResponse;

constexpr size_t kMaxInbox = 10'000;  // messages not yet handled
constexpr size_t kMaxOutbox = 16;
constexpr Duration kProbePatience = std::chrono::seconds(1);
// A stream whose peer does not answer ends within the 30 s of the channel's
// keepalive (rpc/call/channel.cc), so an older heartbeat has arrived.
constexpr Duration kUnsureFor = std::chrono::seconds(40);
constexpr size_t kMaxUnsureBytes = size_t{16} << 20;
// Between heartbeats that do not have room for all that is asked for.
constexpr Duration kHeartbeatsInHaste = std::chrono::milliseconds(50);

// Passes one connection's messages from gRPC's threads to the session's. None
// may be left out: one may withdraw a token, or say which shards are owned. Of
// more than it can keep it keeps none, and Next fails: the coordinator tells
// all of it anew on the next stream.
class Inbox final : public rpc::StreamHandler<Response> {
 public:
  void OnMessage(Response message) override {
    MutexLock lock(&mu_);
    if (overflown_) return;
    if (messages_.size() >= kMaxInbox) {
      overflown_ = true;
      messages_.clear();
    } else {
      messages_.push_back(std::move(message));
    }
    changed_.NotifyAll();
  }
  void OnClosed(const absl::Status& status) override {
    MutexLock lock(&mu_);
    closed_ =
        status.ok() ? Unavailable("the coordinator ended the session") : status;
    changed_.NotifyAll();
  }
  void Interrupt() {
    MutexLock lock(&mu_);
    interrupted_ = true;
    changed_.NotifyAll();
  }

  // Returns the next message; nullopt if there is none by `deadline`, or it was
  // interrupted; an error if the stream has ended. kResourceExhausted: there
  // were too many.
  absl::StatusOr<std::optional<Response>> Next(MonotonicTime deadline) {
    MutexLock lock(&mu_);
    while (messages_.empty() && !overflown_ && !closed_ && !interrupted_)
      if (!changed_.WaitUntil(&mu_, deadline)) break;
    if (!messages_.empty()) {
      std::optional<Response> message(std::move(messages_.front()));
      messages_.pop_front();
      return message;
    }
    if (overflown_)
      return ResourceExhausted(
          "{} of the coordinator's messages wait: the limit", kMaxInbox);
    if (closed_) return *closed_;
    return std::nullopt;
  }
  // Returns why the stream has ended; waits until it has.
  absl::Status WhyClosed() {
    MutexLock lock(&mu_);
    while (!closed_ && !interrupted_) changed_.Wait(&mu_);
    return closed_.value_or(Cancelled("stopping"));
  }
  // Returns false if it was not closed by `deadline`.
  bool WaitClosed(MonotonicTime deadline) {
    MutexLock lock(&mu_);
    while (!closed_)
      if (!changed_.WaitUntil(&mu_, deadline) && !closed_) return false;
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<Response> messages_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mu_);
  bool overflown_ ABSL_GUARDED_BY(mu_) = false;
  bool interrupted_ ABSL_GUARDED_BY(mu_) = false;
};

// Keeps the bad samples of heartbeats that were handed to the stream a short
// time ago: it is not known whether they have arrived.
class UnsureHeartbeats {
 public:
  void Add(const v1::Heartbeat& sent, MonotonicTime now) {
    DropOld(now);
    if (sent.bad_samples().empty() && sent.counted_bad_samples().empty())
      return;
    Sent& kept = sent_.emplace_back(Sent{.at = now});
    *kept.bad.mutable_bad_samples() = sent.bad_samples();
    *kept.bad.mutable_counted_bad_samples() = sent.counted_bad_samples();
    kept.bytes = kept.bad.ByteSizeLong();
    bytes_ += kept.bytes;
    while (bytes_ > kMaxUnsureBytes) DropFirst();
  }
  // Calls `lost` for each, in the order in which they were sent, and forgets
  // them.
  void TakeAll(MonotonicTime now,
               const std::function<void(const v1::Heartbeat&)>& lost) {
    DropOld(now);
    for (; !sent_.empty(); DropFirst()) lost(sent_.front().bad);
  }

 private:
  struct Sent {
    MonotonicTime at;
    v1::Heartbeat bad;  // only bad samples
    size_t bytes = 0;
  };

  void DropOld(MonotonicTime now) {
    while (!sent_.empty() && now - sent_.front().at > kUnsureFor) DropFirst();
  }
  void DropFirst() {
    bytes_ -= sent_.front().bytes;
    sent_.pop_front();
  }

  std::deque<Sent> sent_;
  size_t bytes_ = 0;
};

bool IsRefusal(const absl::Status& status, bool registered) {
  if (absl::IsAborted(status)) return true;
  return !registered &&
         (absl::IsUnauthenticated(status) ||
          absl::IsFailedPrecondition(status) ||
          absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status));
}

}  // namespace

struct Session::State {
  State(SessionOptions o, SessionEvents e, CoordinatorClient* c)
      : options(std::move(o)),
        events(std::move(e)),
        client(c),
        listings(options.listings, c) {}

  void Run();
  absl::Status RunStream();
  absl::Status Serve(rpc::Stream<Request>& stream, Inbox& inbox);
  void Handle(const Response& message);
  bool Stopping() {
    MutexLock lock(&mu);
    return stopping;
  }
  // Returns false if it is stopping.
  bool Pause(Duration duration);
  static Duration Jittered(std::minstd_rand* random, Duration duration) {
    return std::chrono::duration_cast<Duration>(
        duration * std::uniform_real_distribution<>(0.5, 1.0)(*random));
  }

  SessionOptions options;  // registration: the session thread's
  const SessionEvents events;
  CoordinatorClient* const client;
  Listings listings;

  std::atomic<bool> alive{false};
  Mutex mu;
  CondVar stop_changed;
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::shared_ptr<Inbox> inbox ABSL_GUARDED_BY(mu);  // of the present stream

  // Used by the session thread only.
  bool registered = false;
  bool welcomed = false;  // on this stream
  // Numbers of ReportNow, on this stream.
  uint64_t asked = 0, answered = 0;
  UnsureHeartbeats unsure;  // of this stream
  Duration heartbeat_interval = std::chrono::seconds(1);
  std::minstd_rand random{std::random_device{}()};

  std::thread session_thread;
};

bool Session::State::Pause(Duration duration) {
  const MonotonicTime until = Clock::Real().Now() + duration;
  MutexLock lock(&mu);
  while (!stopping && stop_changed.WaitUntil(&mu, until)) {
  }
  return !stopping;
}

void Session::State::Run() {
  Duration backoff = options.first_backoff;
  while (!Stopping()) {
    welcomed = false;
    asked = answered = 0;
    const absl::Status status = RunStream();
    alive = false;
    if (Stopping()) return;
    unsure.TakeAll(Clock::Real().Now(), events.heartbeat_lost);
    if (IsRefusal(status, registered)) {
      LOG_ERROR("session.refused coordinator={} error=\"{}\"",
                client->address(), Message(status));
      if (events.on_refused) events.on_refused(status);
      return;
    }
    if (welcomed) backoff = options.first_backoff;
    // gRPC reports only that a handshake failed.
    const std::string tls =
        absl::IsUnavailable(status) && !welcomed
            ? rpc::TlsTrouble(client->address(), client->connection()->security,
                              kProbePatience)
            : "";
    LOG_WARN("session.lost coordinator={} error=\"{}\" retry_ms={}",
             client->address(), tls.empty() ? Message(status) : tls,
             backoff.count() / 1'000'000);
    if (!Pause(Jittered(&random, backoff))) return;
    backoff = std::min(backoff * 2, options.max_backoff);
  }
}

absl::Status Session::State::RunStream() {
  const auto box = std::make_shared<Inbox>();
  {
    MutexLock lock(&mu);
    if (stopping) return Cancelled("stopping");
    inbox = box;
  }
  const std::shared_ptr<CoordinatorClient::Connection> connection =
      client->connection();
  const std::shared_ptr<rpc::Stream<Request>> stream =
      rpc::ClientStream<Response, Request>::Start(
          connection->security, kMaxOutbox,
          [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return connection->stub->PrepareAsyncWorkerSession(context, queue);
          },
          [&](std::shared_ptr<rpc::Stream<Request>>) { return box; },
          connection);
  const absl::Status status = Serve(*stream, *box);
  stream->Close(absl::OkStatus());
  const auto wait = [&](Duration duration) {
    return box->WaitClosed(Clock::Real().Now() + duration);
  };
  if (!wait(status.ok() ? Duration(std::chrono::seconds(1)) : Duration(0))) {
    stream->Cancel();
    box->WaitClosed(MonotonicTime::max());
  }
  return status;
}

// Returns OK if it is stopping.
absl::Status Session::State::Serve(rpc::Stream<Request>& stream, Inbox& inbox) {
  Request request;
  *request.mutable_register_() = options.registration;
  if (!stream.Send(request).ok()) return inbox.WhyClosed();
  MonotonicTime next = Clock::Real().Now() + options.welcome_timeout;
  while (!Stopping()) {
    ASSIGN_OR_RETURN(const std::optional<Response> message, inbox.Next(next));
    if (message) {
      const bool first = !welcomed;
      const uint64_t before = asked;
      Handle(*message);
      if ((first && welcomed) || asked != before) next = Clock::Real().Now();
    }
    if (Stopping()) break;
    if (Clock::Real().Now() < next) continue;
    if (!welcomed)
      return DeadlineExceeded("the coordinator did not answer in {} ms",
                              options.welcome_timeout.count() / 1'000'000);
    request.Clear();
    *request.mutable_heartbeat() = events.make_heartbeat();
    listings.AddUnderWay(request.mutable_heartbeat());
    if (TellsAllBadSamples(request.heartbeat())) answered = asked;
    request.mutable_heartbeat()->set_answers(answered);
    if (const absl::Status sent = stream.Send(request); !sent.ok()) {
      events.heartbeat_lost(request.heartbeat());
      return absl::IsCancelled(sent) ? inbox.WhyClosed() : sent;
    }
    unsure.Add(request.heartbeat(), Clock::Real().Now());
    next = Clock::Real().Now() +
           (answered == asked ? heartbeat_interval : kHeartbeatsInHaste);
  }
  return absl::OkStatus();
}

void Session::State::Handle(const Response& message) {
  switch (message.kind_case()) {
    case Response::kWelcome: {
      if (message.welcome().has_access_tokens() && events.on_access_tokens)
        events.on_access_tokens(message.welcome().access_tokens());
      const auto& interval = message.welcome().heartbeat_interval();
      heartbeat_interval =
          std::clamp<Duration>(rpc::FromProto(interval), options.min_heartbeat,
                               options.max_heartbeat);
      options.registration.set_highest_sequence_seen(
          std::max<uint64_t>(options.registration.highest_sequence_seen(),
                             message.welcome().sequence()));
      welcomed = true;
      alive = true;
      LOG_INFO("session.registered coordinator={} version={} heartbeat_ms={}",
               client->address(), message.welcome().coordinator_version(),
               heartbeat_interval.count() / 1'000'000);
      if (!std::exchange(registered, true) && events.on_registered)
        events.on_registered();
      break;
    }
    case Response::kIndexDataset:
      listings.Add(message.index_dataset());
      break;
    case Response::kAccessTokens:
      if (events.on_access_tokens)
        events.on_access_tokens(message.access_tokens());
      break;
    case Response::kReportNow:
      asked = message.report_now().number();
      break;
    case Response::kOwnedShards:
      events.on_owned_shards(message.owned_shards());
      break;
    case Response::kLogLevel:
      if (const absl::Status set = SetLogLevel(message.log_level()); !set.ok())
        LOG_WARN("session.log_level error=\"{}\"", Message(set));
      break;
    case Response::KIND_NOT_SET:
      break;
  }
}

Session::Session(SessionOptions options, SessionEvents events,
                 CoordinatorClient* client)
    : state_(std::make_unique<State>(std::move(options), std::move(events),
                                     client)) {
  started_ = state_->listings.started();
  if (started_.ok())
    started_ = StartThread(
        "session", [state = state_.get()] { state->Run(); },
        &state_->session_thread);
}

Session::~Session() { Leave(); }

bool Session::alive() const { return state_->alive; }

void Session::Leave() {
  state_->listings.Stop();
  {
    MutexLock lock(&state_->mu);
    state_->stopping = true;
    state_->stop_changed.NotifyAll();
    if (state_->inbox) state_->inbox->Interrupt();
  }
  if (state_->session_thread.joinable()) state_->session_thread.join();
}

}  // namespace leat::worker
