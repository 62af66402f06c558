// SPDX-License-Identifier: Apache-2.0
//
// ClientStream is the client's end of a Stream (rpc/call/stream.h).
//
//     using Session = ClientStream<v1::WorkerSessionResponse,
//                                  v1::WorkerSessionRequest>;
//     auto stream = Session::Start(
//         security, limit,
//         [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
//           return stub->PrepareAsyncWorkerSession(context, queue);
//         },
//         [&](std::shared_ptr<Stream<v1::WorkerSessionRequest>> stream) {
//           return std::make_shared<Handler>(std::move(stream));
//         });
//
// The stream keeps itself and its handler alive until OnClosed has returned;
// the handler or `keep` must keep alive what `bind` uses (stub, channel). The
// handler is always called on the same thread of rpc/call/client_events.h; if
// there is none, Start calls only OnClosed.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "rpc/call/auth.h"
#include "rpc/call/client_events.h"
#include "rpc/call/grpc_status.h"
#include "rpc/call/stream.h"

namespace leat::rpc {

template <class In, class Out>
class ClientStream final : public Stream<Out> {
 public:
  using Call = grpc::ClientAsyncReaderWriterInterface<Out, In>;
  // Makes the call without starting it.
  using Bind = std::function<std::unique_ptr<Call>(grpc::ClientContext*,
                                                   grpc::CompletionQueue*)>;
  using MakeHandler = std::function<std::shared_ptr<StreamHandler<In>>(
      std::shared_ptr<Stream<Out>>)>;

  static std::shared_ptr<Stream<Out>> Start(
      const Security& security, size_t limit, const Bind& bind,
      const MakeHandler& make_handler,
      std::shared_ptr<const void> keep = nullptr) {
    std::shared_ptr<ClientStream> stream(
        new ClientStream(limit, std::move(keep)));
    AddMetadata(security, &stream->context_);
    stream->handler_ = make_handler(stream);
    const absl::StatusOr<grpc::CompletionQueue*> queue = ClientQueue();
    if (!queue.ok()) {
      stream->NeverStart(queue.status());
      return stream;
    }
    stream->self_ = stream;
    stream->call_ = bind(&stream->context_, *queue);
    stream->call_->StartCall(&stream->started_);
    return stream;
  }

  absl::Status Send(Out message) override {
    MutexLock lock(&mu_);
    if (ended_ || closing_) return Cancelled("the stream has ended");
    if (queue_.size() >= limit_)
      return ResourceExhausted("{} messages wait to be sent: the limit",
                               limit_);
    queue_.push_back(std::move(message));
    Pump();
    return absl::OkStatus();
  }

  size_t queued() const override {
    MutexLock lock(&mu_);
    return queue_.size();
  }

  // The status is not sent: a client can only half-close.
  void Close(absl::Status) override {
    MutexLock lock(&mu_);
    closing_ = true;
    Pump();
  }

  void Cancel() override {
    MutexLock lock(&mu_);
    if (!done_) context_.TryCancel();
  }

 private:
  // Receives the end of an operation. gRPC allows one operation of each kind at
  // a time, so the stream has one object per kind.
  class Operation final : public ClientEvent {
   public:
    using Done = void (ClientStream::*)(bool ok);
    Operation(ClientStream* stream, Done done)
        : stream_(*stream), done_(done) {}
    void Complete(bool ok) override { (stream_.*done_)(ok); }

   private:
    ClientStream& stream_;
    const Done done_;
  };

  ClientStream(size_t limit, std::shared_ptr<const void> keep)
      : limit_(limit), keep_(std::move(keep)) {}

  void OnStarted(bool ok) {
    {
      MutexLock lock(&mu_);
      writing_ = false;
      if (ok) Pump();
    }
    if (!ok) return End();
    call_->Read(&in_, &read_);
  }

  void OnRead(bool ok) {
    if (!ok) return End();
    handler_->OnMessage(std::exchange(in_, In()));
    call_->Read(&in_, &read_);
  }

  void OnWritten(bool ok) {
    size_t left = 0;
    {
      MutexLock lock(&mu_);
      writing_ = false;
      queue_.pop_front();
      if (!ok) queue_.clear();
      if (ok && !ended_) Pump();
      left = queue_.size();
    }
    handler_->OnWritten(left);
    FinishIfEnded();
  }

  void OnWritesDone(bool) {
    {
      MutexLock lock(&mu_);
      writing_ = false;
    }
    FinishIfEnded();
  }

  // The last of all operations has ended.
  void OnFinished(bool) {
    const std::shared_ptr<ClientStream> self = std::move(self_);
    {
      MutexLock lock(&mu_);
      done_ = true;
    }
    std::exchange(handler_, nullptr)->OnClosed(FromGrpc(status_));
  }

  void NeverStart(const absl::Status& status) {
    {
      MutexLock lock(&mu_);
      ended_ = done_ = true;
    }
    std::exchange(handler_, nullptr)->OnClosed(status);
  }

  // Reads have ended, or never began: no more messages are written.
  void End() {
    {
      MutexLock lock(&mu_);
      ended_ = true;
      // Drops all messages that are not in flight.
      queue_.resize(std::min<size_t>(queue_.size(), writing_ ? 1 : 0));
    }
    FinishIfEnded();
  }

  void FinishIfEnded() {
    MutexLock lock(&mu_);
    if (!ended_ || writing_ || std::exchange(finishing_, true)) return;
    call_->Finish(&status_, &finished_);
  }

  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || ended_) return;
    if (!queue_.empty()) {
      writing_ = true;
      call_->Write(queue_.front(), &written_);
    } else if (closing_ && !half_closed_) {
      half_closed_ = writing_ = true;
      call_->WritesDone(&writes_done_);
    }
  }

  grpc::ClientContext context_;
  std::unique_ptr<Call> call_;
  const size_t limit_;
  const std::shared_ptr<const void> keep_;
  std::shared_ptr<ClientStream> self_;          // until OnFinished
  std::shared_ptr<StreamHandler<In>> handler_;  // until OnFinished
  In in_;                                       // the read in flight
  grpc::Status status_;
  Operation started_{this, &ClientStream::OnStarted};
  Operation read_{this, &ClientStream::OnRead};
  Operation written_{this, &ClientStream::OnWritten};
  Operation writes_done_{this, &ClientStream::OnWritesDone};
  Operation finished_{this, &ClientStream::OnFinished};

  mutable Mutex mu_;
  std::deque<Out> queue_ ABSL_GUARDED_BY(mu_);  // the front is in flight
  // The call is being started, or a message or the half-close is in flight.
  bool writing_ ABSL_GUARDED_BY(mu_) = true;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::rpc
