// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/client_events.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::rpc {
namespace {

// Never destroyed: threads use it until the process ends.
class ClientQueues {
 public:
  absl::StatusOr<grpc::CompletionQueue*> Next() {
    MutexLock lock(&mu_);
    const size_t place = turn_++ % most_;
    if (place >= queues_.size()) {
      const absl::Status added = Add();
      if (queues_.empty()) return added;
    }
    return queues_[place % queues_.size()].get();
  }

 private:
  absl::Status Add() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto queue = std::make_unique<grpc::CompletionQueue>();
    std::thread thread;
    RETURN_IF_ERROR(StartThread(
        "client-events", [queue = queue.get()] { Serve(queue); }, &thread));
    thread.detach();
    queues_.push_back(std::move(queue));
    return absl::OkStatus();
  }

  static void Serve(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<ClientEvent*>(tag)->Complete(ok);
  }

  const size_t most_ =
      std::clamp<size_t>(std::thread::hardware_concurrency() / 8, 1, 4);
  Mutex mu_;
  size_t turn_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<grpc::CompletionQueue*> ClientQueue() {
  static auto* const queues = new ClientQueues;
  return queues->Next();
}

void StartClientEvents() {
  [[maybe_unused]] static const bool started = ClientQueue().ok();
}

}  // namespace leat::rpc
