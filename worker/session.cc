// SPDX-License-Identifier: Apache-2.0
#include "worker/session.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/stages.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/client_stream.h"
#include "rpc/convert.h"
#include "rpc/tls_probe.h"
#include "worker/coordinator_client.h"

namespace leat::worker {
namespace {

using Request = v1::WorkerSessionRequest;
using Response = v1::WorkerSessionResponse;

constexpr size_t kMaxInbox = 10'000;  // messages not yet looked at
constexpr size_t kMaxOutbox = 16;
constexpr Duration kProbePatience = std::chrono::seconds(1);

// One connection's messages, from gRPC's threads to the session's.
class Inbox final : public rpc::StreamHandler<Response> {
 public:
  void OnMessage(Response message) override {
    MutexLock lock(&mu_);
    if (messages_.size() >= kMaxInbox) messages_.pop_front();
    messages_.push_back(std::move(message));
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

  // The next message; nullopt: none by `deadline`, or interrupted; an error:
  // the stream has ended.
  absl::StatusOr<std::optional<Response>> Next(MonotonicTime deadline) {
    MutexLock lock(&mu_);
    while (messages_.empty() && !closed_ && !interrupted_)
      if (!changed_.WaitUntil(&mu_, deadline)) break;
    if (!messages_.empty()) {
      std::optional<Response> message(std::move(messages_.front()));
      messages_.pop_front();
      return message;
    }
    if (closed_) return *closed_;
    return std::nullopt;
  }
  // Why the stream has ended, which it has or is about to.
  absl::Status WhyClosed() {
    MutexLock lock(&mu_);
    while (!closed_ && !interrupted_) changed_.Wait(&mu_);
    return closed_.value_or(Cancelled("stopping"));
  }
  // False: not by `deadline`.
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
  bool interrupted_ ABSL_GUARDED_BY(mu_) = false;
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
        directives(options.max_directives) {
    options.source_limits.cancelled = &cancelled;
  }

  void Run();
  absl::Status RunStream();
  absl::Status Serve(rpc::Stream<Request>& stream, Inbox& inbox);
  void Handle(const Response& message);
  class BlockSender;
  absl::Status Retry(std::string_view event, const v1::IndexDataset& directive,
                     const std::function<absl::Status()>& call);
  absl::StatusOr<BuiltIndex> BuildFor(const v1::IndexDataset& directive,
                                      BlockSender* sender);
  void RunDirectives();
  bool Stopping() {
    MutexLock lock(&mu);
    return stopping;
  }
  // False: stopping.
  bool Pause(Duration duration);
  static Duration Jittered(std::minstd_rand* random, Duration duration) {
    return std::chrono::duration_cast<Duration>(
        duration * std::uniform_real_distribution<>(0.5, 1.0)(*random));
  }

  SessionOptions options;  // registration: the session thread's
  const SessionEvents events;
  CoordinatorClient* const client;
  BoundedQueue<v1::IndexDataset> directives;

  std::atomic<bool> cancelled{false};
  std::atomic<bool> alive{false};
  Mutex mu;
  CondVar stop_changed;
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::shared_ptr<Inbox> inbox ABSL_GUARDED_BY(mu);  // of the stream now

  // The session thread's.
  bool registered = false;
  bool welcomed = false;  // on this stream
  Duration heartbeat_interval = std::chrono::seconds(1);
  std::minstd_rand random{std::random_device{}()};

  // The index thread's.
  std::minstd_rand index_random{std::random_device{}()};

  std::thread session_thread, index_thread;
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
    const absl::Status status = RunStream();
    alive = false;
    if (Stopping()) return;
    if (IsRefusal(status, registered)) {
      LOG_ERROR("session.refused coordinator={} error=\"{}\"",
                client->address(), Message(status));
      if (events.on_refused) events.on_refused(status);
      return;
    }
    if (welcomed) backoff = options.first_backoff;
    // gRPC says no more of a handshake than that it failed.
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

// OK: stopping.
absl::Status Session::State::Serve(rpc::Stream<Request>& stream, Inbox& inbox) {
  Request request;
  *request.mutable_register_() = options.registration;
  if (!stream.Send(request).ok()) return inbox.WhyClosed();
  MonotonicTime next = Clock::Real().Now() + options.welcome_timeout;
  while (!Stopping()) {
    ASSIGN_OR_RETURN(const std::optional<Response> message, inbox.Next(next));
    if (message) {
      const bool first = !welcomed;
      Handle(*message);
      if (first && welcomed) next = Clock::Real().Now();
    }
    if (Stopping()) break;
    if (Clock::Real().Now() < next) continue;
    if (!welcomed)
      return DeadlineExceeded("the coordinator did not answer in {} ms",
                              options.welcome_timeout.count() / 1'000'000);
    request.Clear();
    *request.mutable_heartbeat() = events.make_heartbeat();
    if (const absl::Status sent = stream.Send(request); !sent.ok()) {
      events.heartbeat_lost(request.heartbeat());
      return absl::IsCancelled(sent) ? inbox.WhyClosed() : sent;
    }
    next = Clock::Real().Now() + heartbeat_interval;
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
          std::clamp<Duration>(std::chrono::seconds(std::clamp<int64_t>(
                                   interval.seconds(), 0, 3600)) +
                                   std::chrono::nanoseconds(interval.nanos()),
                               options.min_heartbeat, options.max_heartbeat);
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
      if (!directives.TryPush(v1::IndexDataset(message.index_dataset())))
        LOG_WARN("session.directive_dropped dataset={}",
                 message.index_dataset().dataset_id());
      break;
    case Response::kAccessTokens:
      if (events.on_access_tokens)
        events.on_access_tokens(message.access_tokens());
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

// Brings an index to the coordinator as it is made. One block is held at a
// time. While the coordinator is out of reach the listing waits for it.
class Session::State::BlockSender final : public IndexSink {
 public:
  BlockSender(State* state, const v1::IndexDataset* directive)
      : state_(state), directive_(directive) {}

  absl::Status Add(std::string bytes, uint64_t samples) override {
    const IndexBlock block{
        .sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = samples};
    if (blocks_.size() >= kMaxIndexBlocks)
      return ResourceExhausted("an index of more than {} blocks: the limit",
                               kMaxIndexBlocks);
    blocks_.push_back(block);
    return state_->Retry("index.block_not_sent", *directive_, [&] {
      return state_->client->PutBlock(*directive_, block, bytes);
    });
  }
  std::span<const IndexBlock> blocks() const { return blocks_; }

 private:
  State* const state_;
  const v1::IndexDataset* const directive_;
  std::vector<IndexBlock> blocks_;
};

// Again while the coordinator is out of reach, for `upload_patience`.
absl::Status Session::State::Retry(std::string_view event,
                                   const v1::IndexDataset& directive,
                                   const std::function<absl::Status()>& call) {
  const MonotonicTime deadline = Clock::Real().Now() + options.upload_patience;
  Duration backoff = options.first_backoff;
  for (int attempt = 1;; ++attempt) {
    absl::Status status = call();
    if (status.ok()) return status;
    LOG_WARN("{} dataset={} attempt={} error=\"{}\"", event,
             directive.dataset_id(), attempt, Message(status));
    const bool again =
        absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!again || Clock::Real().Now() + backoff >= deadline) return status;
    if (!Pause(Jittered(&index_random, backoff)))
      return Cancelled("the worker stops");
    backoff = std::min(backoff * 2, options.max_backoff);
  }
}

// An index that the coordinator would refuse is an error here: uploading it
// would only take time.
absl::StatusOr<BuiltIndex> Session::State::BuildFor(
    const v1::IndexDataset& directive, BlockSender* sender) {
  const StageScope listing(Stage::kList);
  ASSIGN_OR_RETURN(const Node reader, rpc::FromProto(directive.reader()));
  SourceLimits limits = options.source_limits;
  const uint64_t most = directive.max_index_bytes() > 0
                            ? directive.max_index_bytes()
                            : limits.max_index_bytes;
  if (directive.index_block_bytes() > 0) {
    limits.max_blocks_bytes = most;
    limits.block_bytes =
        std::min(directive.index_block_bytes(), kMaxIndexBlockBytes);
    return BuildIndexInto(reader, limits, sender);
  }
  limits.max_index_bytes = std::min(limits.max_index_bytes, most);
  ASSIGN_OR_RETURN(BuiltIndex index, BuildIndex(reader, limits));
  if (index.blob.size() > limits.max_index_bytes)
    return ResourceExhausted(
        "the index of {} samples has {} bytes, over the limit of {} bytes",
        index.shards.num_samples(), index.blob.size(), limits.max_index_bytes);
  return index;
}

void Session::State::RunDirectives() {
  std::optional<StageThread> enrolled;
  if (options.stages != nullptr) enrolled.emplace(options.stages);
  while (true) {
    const std::optional<v1::IndexDataset> directive =
        directives.Pop(MonotonicTime::max());
    if (!directive || Stopping()) return;
    const MonotonicTime start = Clock::Real().Now();
    BlockSender sender(this, &*directive);
    const absl::StatusOr<BuiltIndex> index = BuildFor(*directive, &sender);
    if (Stopping()) return;  // cut short: it says nothing of the dataset
    LOG_INFO("index.built dataset={} samples={} blocks={} ms={} error=\"{}\"",
             directive->dataset_id(),
             index.ok() ? index->shards.num_samples() : 0,
             sender.blocks().size(),
             (Clock::Real().Now() - start).count() / 1'000'000,
             Message(index.status()));
    Retry("index.not_uploaded", *directive, [&] {
      return client->UploadIndex(*directive, index, sender.blocks());
    }).IgnoreError();
  }
}

Session::Session(SessionOptions options, SessionEvents events,
                 CoordinatorClient* client)
    : state_(std::make_unique<State>(std::move(options), std::move(events),
                                     client)) {
  started_ = StartThread(
      "session", [state = state_.get()] { state->Run(); },
      &state_->session_thread);
  if (started_.ok())
    started_ = StartThread(
        "index", [state = state_.get()] { state->RunDirectives(); },
        &state_->index_thread);
}

Session::~Session() {
  Leave();
  if (state_->index_thread.joinable()) state_->index_thread.join();
}

bool Session::alive() const { return state_->alive; }

void Session::Leave() {
  state_->cancelled = true;
  {
    MutexLock lock(&state_->mu);
    state_->stopping = true;
    state_->stop_changed.NotifyAll();
    if (state_->inbox) state_->inbox->Interrupt();
  }
  state_->directives.Close();
  if (state_->session_thread.joinable()) state_->session_thread.join();
}

}  // namespace leat::worker
