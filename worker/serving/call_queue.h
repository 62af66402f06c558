// SPDX-License-Identifier: Apache-2.0
//
// CallQueue: unary calls of a service that are answered on threads of their
// own, since an answer may wait for a disk or for storage:
//
//   gRPC ─► Add ─► whatever the call waits for first ─► Answer ─► queue
//        ─► a thread ─► gRPC
//
// A call that nobody waits for any more is not answered. Stop ends all calls
// that are under way, so that the server can shut down.
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

// A call and its answer, which one thread at a time makes.
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

  Response* const response_;  // gRPC's
};

// Thread-safe. Who holds it may call it after it was closed.
class CallQueue {
 public:
  using Work = std::function<absl::Status()>;  // makes the call's answer

  // `name`: of the threads. `max_calls`: under way.
  CallQueue(const std::string& name, int threads, size_t max_calls);
  // REQUIRES: it was closed.
  ~CallQueue() = default;

  // kResourceExhausted: a thread cannot be had.
  const absl::Status& started() const { return started_; }
  // kUnavailable, which the call then is answered by: it was stopped, or too
  // many calls are under way.
  absl::Status Add(const std::shared_ptr<QueuedCall>& call);
  // Answers a call that was added by what `work` makes and returns.
  void Answer(const std::shared_ptr<QueuedCall>& call, Work work);
  // Ends a call that was added.
  void End(const std::shared_ptr<QueuedCall>& call, const absl::Status& status);
  // Answers what waits, and what comes, by kUnavailable.
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
