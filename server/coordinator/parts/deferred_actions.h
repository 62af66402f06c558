// SPDX-License-Identifier: Apache-2.0
//
// DeferredActions has the external actions of a decision: callbacks, wakes and
// log lines. They run when the lock is released: a callback may call the
// coordinator, and a log whose reader is slow may block.
//
//   DeferredActions deferred;  // declared before the lock: it runs after it
//   MutexLock lock(&mu_);
//   deferred.Add(wake_);
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace leat::server {

class DeferredActions {
 public:
  DeferredActions() = default;
  DeferredActions(const DeferredActions&) = delete;
  DeferredActions& operator=(const DeferredActions&) = delete;
  ~DeferredActions() {
    for (std::function<void()>& call : calls_) call();
  }
  void Add(std::function<void()> call) {
    if (call) calls_.push_back(std::move(call));
  }

 private:
  std::vector<std::function<void()>> calls_;
};

}  // namespace leat::server
