// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/call_set.h"

#include <algorithm>
#include <chrono>

namespace leat::rpc {

void PrepareCall(const Security& security, Duration timeout,
                 grpc::ClientContext* context) {
  AddMetadata(security, context);
  constexpr Duration kYear = std::chrono::hours(24 * 365);
  context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::min(timeout, kYear)));
}

CallSet::Call::Call(CallSet* set, const Security& security, Duration timeout)
    : set_(*set) {
  PrepareCall(security, timeout, &context);
  MutexLock lock(&set_.mu_);
  set_.calls_.insert(this);
  if (set_.stopped_) context.TryCancel();
}

CallSet::Call::~Call() {
  MutexLock lock(&set_.mu_);
  set_.calls_.erase(this);
}

void CallSet::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
  for (Call* call : calls_) call->context.TryCancel();
}

bool CallSet::stopped() const {
  MutexLock lock(&mu_);
  return stopped_;
}

size_t CallSet::size() const {
  MutexLock lock(&mu_);
  return calls_.size();
}

}  // namespace leat::rpc
