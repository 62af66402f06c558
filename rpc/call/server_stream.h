// SPDX-License-Identifier: Apache-2.0
//
// ServerStream is the server's end of a Stream (rpc/call/stream.h).
//
//     grpc::ServerBidiReactor<In, Out>* Rows(
//         grpc::CallbackServerContext* context) override {
//       if (absl::Status s = CheckMetadata(security_, *context); !s.ok())
//         return new RejectedStream<In, Out>(s);
//       return ServerStream<In, Out>::Start(
//           context, limit, [&](std::shared_ptr<Stream<Out>> stream) {
//             return std::make_shared<RowsHandler>(std::move(stream));
//           });
//     }
//
// If the peer stops writing, the stream ends with OK after the queued messages
// have been sent.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rpc/call/grpc_status.h"
#include "rpc/call/stream.h"

namespace leat::rpc {

template <class In, class Out>
class ServerStream final
    : public Stream<Out>,
      public grpc::ServerBidiReactor<In, Out>,
      public std::enable_shared_from_this<ServerStream<In, Out>> {
 public:
  using MakeHandler = std::function<std::shared_ptr<StreamHandler<In>>(
      std::shared_ptr<Stream<Out>>)>;

  // `limit`: maximum number of queued messages. The handler usually owns the
  // stream it receives: the cycle is cut after OnClosed.
  static ServerStream* Start(grpc::CallbackServerContext* context, size_t limit,
                             const MakeHandler& make_handler) {
    std::shared_ptr<ServerStream> stream(new ServerStream(context, limit));
    stream->self_ = stream;
    stream->handler_ = make_handler(stream);
    stream->StartRead(&stream->in_);
    return stream.get();
  }

  absl::Status Send(Out message) override {
    MutexLock lock(&mu_);
    if (closing_) return Cancelled("the stream has ended");
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

  void Close(absl::Status status) override {
    MutexLock lock(&mu_);
    if (closing_) return;
    closing_ = true;
    final_status_ = std::move(status);
    Pump();
  }

  void Cancel() override {
    MutexLock lock(&mu_);
    DropQueue();
    if (writing_ && !finished_) context_->TryCancel();
    Pump();
  }

 private:
  ServerStream(grpc::CallbackServerContext* context, size_t limit)
      : context_(context), limit_(limit) {}

  void OnReadDone(bool ok) override {
    if (!ok) return Close(absl::OkStatus());
    handler_->OnMessage(std::exchange(in_, In()));
    this->StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    size_t left = 0;
    {
      MutexLock lock(&mu_);
      writing_ = false;
      queue_.pop_front();
      if (!ok) DropQueue();
      Pump();
      left = queue_.size();
    }
    handler_->OnWritten(left);
  }

  void OnCancel() override {
    MutexLock lock(&mu_);
    DropQueue();
    Pump();
  }

  void OnDone() override {
    const std::shared_ptr<ServerStream> self = std::move(self_);
    const std::shared_ptr<StreamHandler<In>> handler = std::move(handler_);
    absl::Status status;
    {
      MutexLock lock(&mu_);
      status = final_status_;
    }
    handler->OnClosed(status);
  }

  // Keeps the message in flight, which gRPC reads until OnWriteDone.
  void DropQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!closing_) final_status_ = leat::Cancelled("the peer has gone");
    closing_ = true;
    queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
  }

  // Starts the one operation that may start now. gRPC runs no callback inside
  // the calls made here.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || finished_) return;
    if (!queue_.empty()) {
      writing_ = true;
      this->StartWrite(&queue_.front());
    } else if (closing_) {
      finished_ = true;
      this->Finish(ToGrpc(final_status_));
    }
  }

  grpc::CallbackServerContext* const context_;
  const size_t limit_;
  std::shared_ptr<ServerStream> self_;          // until OnDone
  std::shared_ptr<StreamHandler<In>> handler_;  // until OnDone
  In in_;                                       // the read in flight

  mutable Mutex mu_;
  std::deque<Out> queue_
      ABSL_GUARDED_BY(mu_);  // the front is in flight while writing_
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status final_status_ ABSL_GUARDED_BY(mu_);
};

// Ends a stream at once with a status.
template <class In, class Out>
class RejectedStream final : public grpc::ServerBidiReactor<In, Out> {
 public:
  explicit RejectedStream(const absl::Status& status) {
    this->Finish(ToGrpc(status));
  }

 private:
  void OnDone() override { delete this; }
};

}  // namespace leat::rpc
