// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/call_queue.h"

#include <optional>

#include "core/status.h"
#include "core/thread.h"
#include "rpc/call/grpc_status.h"

namespace leat::worker {
namespace {

absl::Status Stopping() { return Unavailable("the worker is draining"); }

}  // namespace

// Holds the lock throughout, so that gRPC's message stays valid.
void QueuedCall::Finish(const absl::Status& status) {
  MutexLock lock(&mu_);
  if (std::exchange(finished_, true)) return;
  if (status.ok()) TakeAnswer();
  reactor_->Finish(rpc::ToGrpc(status));
}

bool QueuedCall::wanted() {
  MutexLock lock(&mu_);
  return !finished_ && !context_->IsCancelled();
}

CallQueue::CallQueue(const std::string& name, int threads, size_t max_calls)
    : max_calls_(max_calls), ready_(max_calls) {
  for (int i = 0; i < threads && started_.ok(); ++i) {
    std::thread thread;
    started_ = StartThread(
        fmt::format("{}-{}", name, i), [this] { Run(); }, &thread);
    if (started_.ok()) threads_.push_back(std::move(thread));
  }
}

absl::Status CallQueue::Add(const std::shared_ptr<QueuedCall>& call) {
  absl::Status status;
  {
    MutexLock lock(&mu_);
    if (stopping_)
      status = Stopping();
    else if (calls_.size() >= max_calls_)
      status =
          Unavailable("{} such calls are under way: the limit", calls_.size());
    else
      calls_.insert(call);
  }
  if (!status.ok()) call->Finish(status);
  return status;
}

void CallQueue::Answer(const std::shared_ptr<QueuedCall>& call, Work work) {
  if (!ready_.TryPush({call, std::move(work)})) End(call, Stopping());
}

void CallQueue::End(const std::shared_ptr<QueuedCall>& call,
                    const absl::Status& status) {
  call->Finish(status);
  MutexLock lock(&mu_);
  calls_.erase(call);
}

void CallQueue::Run() {
  while (const std::optional<Ready> next = ready_.Pop(MonotonicTime::max()))
    End(next->call,
        next->call->wanted() ? next->work() : Cancelled("the caller is gone"));
}

void CallQueue::Stop() {
  std::set<std::shared_ptr<QueuedCall>> calls;
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    calls = calls_;
  }
  for (const auto& call : calls) call->Finish(Stopping());
}

void CallQueue::Close() {
  Stop();
  ready_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace leat::worker
