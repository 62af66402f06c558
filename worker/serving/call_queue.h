// SPDX-License-Identifier: Apache-2.0
//
// CallQueue: answers unary calls of a service on separate threads, since an
// answer may wait for a disk or for storage:
//
//   gRPC ─► Add ─► whatever the call waits for first ─► Answer ─► queue
//        ─► a thread ─► gRPC
//
// A call that was cancelled is not answered. Stop ends all calls under way, so
// that the server can shut down.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/bounded_queue.h"
#include "core/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace leat::worker {

// A call under way. gRPC owns its messages, which must not be touched after
// Finish. Only the first Finish has an effect. Thread-safe.
class QueuedCall {
 public:
  explicit QueuedCall(grpc::CallbackServerContext* context)
      : context_(context), reactor_(context->DefaultReactor()) {}
  virtual ~QueuedCall() = default;

  grpc::ServerUnaryReactor* reactor() { return reactor_; }
  void Finish(const absl::Status& status);
  bool wanted();

 private:
  // Moves the answer into gRPC's message.
  virtual void TakeAnswer() = 0;

  grpc::CallbackServerContext* const context_;
  grpc::ServerUnaryReactor* const reactor_;
  Mutex mu_;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

// A call and its answer, which one thread at a time computes.
template <class Request, class Response>
class QueuedCallOf final : public QueuedCall {
 public:
  QueuedCallOf(grpc::CallbackServerContext* context, const Request* request,
               Response* response)
      : QueuedCall(context), request(*request), response_(response) {}

  const Request request;
  Response answer;

 private:
  void TakeAnswer() override { response_->Swap(&answer); }

  Response* const response_;  // owned by gRPC
};

// Thread-safe. May be called after it was closed.
class CallQueue {
 public:
  using Work = std::function<absl::Status()>;  // computes the call's answer

  // `name` names the threads. `max_calls` limits the calls under way.
  CallQueue(const std::string& name, int threads, size_t max_calls);
  // REQUIRES: Close was called.
  ~CallQueue() = default;

  // kResourceExhausted: a thread cannot be created.
  const absl::Status& started() const { return started_; }
  // kUnavailable, which also answers the call: the queue was stopped, or too
  // many calls are under way.
  absl::Status Add(const std::shared_ptr<QueuedCall>& call);
  // Answers a call that was added, with the result of `work`.
  void Answer(const std::shared_ptr<QueuedCall>& call, Work work);
  // Ends a call that was added.
  void End(const std::shared_ptr<QueuedCall>& call, const absl::Status& status);
  // Answers waiting and later calls with kUnavailable.
  void Stop();
  // Stops, and waits for its threads.
  void Close();

 private:
  struct Ready {
    std::shared_ptr<QueuedCall> call;
    Work work;
  };
  void Run();

  const size_t max_calls_;
  BoundedQueue<Ready> ready_;
  Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<QueuedCall>> calls_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
  absl::Status started_;
};

}  // namespace leat::worker
