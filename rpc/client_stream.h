// SPDX-License-Identifier: Apache-2.0
//
// ClientStream: the client's end of a Stream (rpc/stream.h).
//
//   auto stream = ClientStream<v1::WorkerSessionResponse,
//   v1::WorkerSessionRequest>::Start(
//       security, limit,
//       [&](grpc::ClientContext* context, auto* reactor) {
//       stub->async()->WorkerSession(context, reactor); },
//       [&](std::shared_ptr<Stream<v1::WorkerSessionRequest>> stream) { return
//       std::make_shared<Handler>(...); });
//
// The stream keeps itself and its handler alive until OnClosed has returned;
// what `bind` uses (stub, channel) must be kept alive by the handler or by
// `keep`.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "rpc/auth.h"
#include "rpc/status.h"
#include "rpc/stream.h"

namespace leat::rpc {

template <class In, class Out>
class ClientStream final : public Stream<Out>,
                           public grpc::ClientBidiReactor<Out, In> {
 public:
  using Bind = std::function<void(grpc::ClientContext*,
                                  grpc::ClientBidiReactor<Out, In>*)>;
  using MakeHandler = std::function<std::shared_ptr<StreamHandler<In>>(
      std::shared_ptr<Stream<Out>>)>;

  static std::shared_ptr<Stream<Out>> Start(
      const Security& security, size_t limit, const Bind& bind,
      const MakeHandler& make_handler,
      std::shared_ptr<const void> keep = nullptr) {
    std::shared_ptr<ClientStream> stream(
        new ClientStream(limit, std::move(keep)));
    AddMetadata(security, &stream->context_);
    stream->self_ = stream;
    stream->handler_ = make_handler(stream);
    bind(&stream->context_, stream.get());
    stream->AddHold();  // so that writes may start outside reactions
    stream->StartRead(&stream->in_);
    stream->StartCall();
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

  // The status is not sent: a client can only say that it has finished.
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
  ClientStream(size_t limit, std::shared_ptr<const void> keep)
      : limit_(limit), keep_(std::move(keep)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return End();
    handler_->OnMessage(std::exchange(in_, In()));
    this->StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
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
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<ClientStream> self = std::move(self_);
    const std::shared_ptr<StreamHandler<In>> handler = std::move(handler_);
    {
      MutexLock lock(&mu_);
      done_ = true;
    }
    handler->OnClosed(FromGrpc(status));
  }

  // Reads have ended: nothing more is written, and OnDone may come.
  void End() {
    MutexLock lock(&mu_);
    if (ended_) return;
    ended_ = true;
    queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
    this->RemoveHold();
  }

  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || ended_) return;
    if (!queue_.empty()) {
      writing_ = true;
      this->StartWrite(&queue_.front());
    } else if (closing_ && !half_closed_) {
      half_closed_ = true;
      this->StartWritesDone();
    }
  }

  grpc::ClientContext context_;
  const size_t limit_;
  const std::shared_ptr<const void> keep_;
  std::shared_ptr<ClientStream> self_;          // until OnDone
  std::shared_ptr<StreamHandler<In>> handler_;  // until OnDone
  In in_;                                       // the read in flight

  mutable Mutex mu_;
  std::deque<Out> queue_
      ABSL_GUARDED_BY(mu_);  // the front is in flight while writing_
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::rpc
