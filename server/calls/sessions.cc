// SPDX-License-Identifier: Apache-2.0
#include "server/calls/sessions.h"

#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/support/slice.h"
#include "rpc/call/raw_frame.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

// Messages handed to the stream ahead of time. The number is small, so that a
// waiting message is still the newest when it is sent.
constexpr size_t kAhead = 2;

class WorkerHandler : public rpc::StreamHandler<v1::WorkerSessionRequest>,
                      public std::enable_shared_from_this<WorkerHandler> {
 public:
  WorkerHandler(Coordinator* coordinator, const Clock* clock,
                std::string identity, std::function<bool()> peer_gone,
                std::shared_ptr<rpc::Stream<v1::WorkerSessionResponse>> stream)
      : coordinator_(coordinator),
        clock_(clock),
        identity_(std::move(identity)),
        peer_gone_(std::move(peer_gone)),
        stream_(std::move(stream)) {}

  void OnMessage(v1::WorkerSessionRequest message) override {
    if (absl::Status status = Handle(message); !status.ok())
      stream_->Close(std::move(status));
  }
  void OnWritten(size_t) override { Pump(); }
  void OnClosed(const absl::Status& status) override {
    if (const SessionId session = this->session(); session != 0)
      coordinator_->CloseWorker(session, status.ok() && !peer_gone_(),
                                Now::Of(*clock_));
  }

 private:
  SessionId session() {
    MutexLock lock(&mu_);
    return session_;
  }

  absl::Status Handle(const v1::WorkerSessionRequest& message) {
    const SessionId session = this->session();
    const Now now = Now::Of(*clock_);
    if (message.has_register_() && session == 0) {
      ASSIGN_OR_RETURN(WorkerRegistration registration,
                       FromProto(message.register_()));
      registration.identity = identity_;
      ASSIGN_OR_RETURN(const SessionId registered,
                       coordinator_->RegisterWorker(
                           registration, now, [weak = weak_from_this()] {
                             if (auto self = weak.lock()) self->Pump();
                           }));
      {
        MutexLock lock(&mu_);
        session_ = registered;
      }
      Pump();  // it was woken before the session was known
      return absl::OkStatus();
    }
    if (message.has_heartbeat() && session != 0)
      return coordinator_->Heartbeat(session, ReportOf(message.heartbeat()),
                                     BadSamplesOf(message.heartbeat()), now,
                                     FailuresOf(message.heartbeat()));
    return InvalidArgument(
        "a worker's session: want one register message, then heartbeats");
  }

  // The lock keeps messages in order when two threads pump.
  void Pump() {
    MutexLock lock(&mu_);
    while (session_ != 0 && stream_->queued() < kAhead) {
      absl::StatusOr<std::optional<WorkerMessage>> next =
          coordinator_->NextForWorker(session_);
      if (!next.ok()) return stream_->Close(next.status());
      if (!next->has_value()) return;
      if (!stream_->Send(ToProto(**next)).ok()) return;
    }
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  const std::string identity_;
  const std::function<bool()> peer_gone_;
  const std::shared_ptr<rpc::Stream<v1::WorkerSessionResponse>> stream_;
  Mutex mu_;
  SessionId session_ ABSL_GUARDED_BY(mu_) = 0;
};

// Returns the encoded message of `table` without copying its bytes.
grpc::ByteBuffer Borrow(std::shared_ptr<const Assignment> table) {
  using Owner = std::shared_ptr<const Assignment>;
  auto* owner = new Owner(std::move(table));
  const std::string& bytes = (*owner)->encoded;
  const grpc::Slice slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* held) { delete static_cast<Owner*>(held); }, owner);
  return grpc::ByteBuffer(&slice, 1);
}

class ConsumerHandler : public rpc::StreamHandler<grpc::ByteBuffer>,
                        public std::enable_shared_from_this<ConsumerHandler> {
 public:
  ConsumerHandler(Coordinator* coordinator, const Clock* clock,
                  SpanRelay* spans, SheetRelay* sheets,
                  std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream)
      : coordinator_(coordinator),
        clock_(clock),
        spans_(spans),
        sheets_(sheets),
        stream_(std::move(stream)) {}

  void OnMessage(grpc::ByteBuffer message) override {
    v1::ConsumerSessionRequest request;
    absl::Status status = rpc::DecodeMessage(message, &request);
    if (status.ok()) status = Handle(&request);
    if (!status.ok()) stream_->Close(std::move(status));
  }
  void OnWritten(size_t) override { Pump(); }
  void OnClosed(const absl::Status&) override {
    const SessionId session = this->session();
    if (session == 0) return;
    spans_->Leave(session);
    sheets_->Leave(session);
    coordinator_->CloseConsumer(session, Now::Of(*clock_));
  }

 private:
  SessionId session() {
    MutexLock lock(&mu_);
    return session_;
  }

  absl::Status Handle(v1::ConsumerSessionRequest* message) {
    const SessionId session = this->session();
    const Now now = Now::Of(*clock_);
    if (message->has_open() && session == 0) {
      ASSIGN_OR_RETURN(const ConsumerOpening opening,
                       FromProto(message->open()));
      ASSIGN_OR_RETURN(
          const SessionId opened,
          coordinator_->OpenConsumer(opening, now, [weak = weak_from_this()] {
            if (auto self = weak.lock()) self->Pump();
          }));
      {
        MutexLock lock(&mu_);
        session_ = opened;
      }
      spans_->Join(opened, message->open().plan_hash(),
                   message->open().consumer(),
                   [weak = weak_from_this()](const v1::TraceConsumer& wanted) {
                     v1::ConsumerSessionResponse response;
                     *response.mutable_trace() = wanted;
                     if (auto self = weak.lock()) self->Tell(response);
                   });
      sheets_->Join(opened, message->open().plan_hash(),
                    message->open().consumer(),
                    [weak = weak_from_this()](const v1::WantSheet& wanted) {
                      v1::ConsumerSessionResponse response;
                      *response.mutable_sheet() = wanted;
                      if (auto self = weak.lock()) self->Tell(response);
                    });
      Pump();
      return absl::OkStatus();
    }
    if (message->has_spans() && session != 0) {
      spans_->Add(session, std::move(*message->mutable_spans()));
      return absl::OkStatus();
    }
    if (message->has_sheet() && session != 0) {
      sheets_->Add(session, std::move(*message->mutable_sheet()), now.mono);
      return absl::OkStatus();
    }
    if (message->has_stats() && session != 0) {
      ConsumerReport report = ReportOf(std::move(*message->mutable_stats()));
      if (message->has_unreached())
        report.unreached = FromProto(message->unreached());
      RETURN_IF_ERROR(
          coordinator_->ReportConsumer(session, std::move(report), now));
      if (message->settle()) coordinator_->SettleConsumer(session);
      return absl::OkStatus();
    }
    return InvalidArgument(
        "a consumer's session: want one open message, then stats, spans and "
        "sheets");
  }

  // If the queue is full, only this consumer loses its messages.
  void Tell(const v1::ConsumerSessionResponse& response) {
    const grpc::Slice slice(response.SerializeAsString());
    stream_->Send(grpc::ByteBuffer(&slice, 1)).IgnoreError();
  }

  void Pump() {
    MutexLock lock(&mu_);
    if (session_ == 0 || stream_->queued() >= kAhead) return;
    const Coordinator::JobNews news = coordinator_->NewsForConsumer(session_);
    if (news.failure) {
      v1::ConsumerSessionResponse response;
      v1::JobFailure& failure = *response.mutable_failure();
      failure.set_code(static_cast<int>(news.failure->code()));
      failure.set_message(std::string(Message(*news.failure)));
      Tell(response);
    }
    if (news.settled) {
      v1::ConsumerSessionResponse response;
      response.set_settled(true);
      Tell(response);
    }
    absl::StatusOr<std::shared_ptr<const Assignment>> next =
        coordinator_->NextForConsumer(session_);
    if (!next.ok()) return stream_->Close(next.status());
    if (*next == nullptr) return;
    stream_->Send(Borrow(*std::move(next))).IgnoreError();  // ended: no matter
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  SpanRelay* const spans_;
  SheetRelay* const sheets_;
  const std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream_;
  Mutex mu_;
  SessionId session_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

std::shared_ptr<rpc::StreamHandler<v1::WorkerSessionRequest>> MakeWorkerSession(
    Coordinator* coordinator, const Clock* clock, std::string identity,
    std::function<bool()> peer_gone,
    std::shared_ptr<rpc::Stream<v1::WorkerSessionResponse>> stream) {
  return std::make_shared<WorkerHandler>(
      coordinator, clock, std::move(identity), std::move(peer_gone),
      std::move(stream));
}

std::shared_ptr<rpc::StreamHandler<grpc::ByteBuffer>> MakeConsumerSession(
    Coordinator* coordinator, const Clock* clock, SpanRelay* spans,
    SheetRelay* sheets, std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream) {
  return std::make_shared<ConsumerHandler>(coordinator, clock, spans, sheets,
                                           std::move(stream));
}

}  // namespace leat::server
