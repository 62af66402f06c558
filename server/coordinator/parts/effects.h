// SPDX-License-Identifier: Apache-2.0
//
// Effects: the external actions of a decision: callbacks, wakes and log lines.
// They run when the lock is released: a callback may call the coordinator, and
// a log whose reader is slow may block.
//
//   Effects effects;       // declared before the lock, so that it goes after it
//   MutexLock lock(&mu_);
//   effects.Add(wake_);
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace leat::server {

class Effects {
 public:
  Effects() = default;
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;
  ~Effects() {
    for (std::function<void()>& call : calls_) call();
  }
  void Add(std::function<void()> call) {
    if (call) calls_.push_back(std::move(call));
  }

 private:
  std::vector<std::function<void()>> calls_;
};

}  // namespace leat::server
