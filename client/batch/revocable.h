// SPDX-License-Identifier: Apache-2.0
//
// Revocable: a callback that its owner can take back. It runs without a lock;
// once Set has returned, the previous callback is not running and never will.
//
// Thread-safe. A callback neither blocks, nor calls Set of its own Revocable.
#pragma once

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"

namespace leat::client {

template <class... Args>
class Revocable {
 public:
  Revocable() = default;
  explicit Revocable(std::function<void(Args...)> callback)
      : callback_(std::move(callback)) {}

  // Waits until running calls have ended. `callback` may be null. A concurrent
  // Call has no effect.
  void Set(std::function<void(Args...)> callback) {
    {
      MutexLock lock(&mu_);
      ++changing_;
      while (running_ > 0) idle_.Wait(&mu_);
      std::swap(callback_, callback);
      --changing_;
    }
    // The old callback's captures are destroyed here, without the lock.
  }

  void Call(Args... args) {
    const std::function<void(Args...)>* callback = nullptr;
    {
      MutexLock lock(&mu_);
      if (changing_ > 0 || !callback_) return;
      ++running_;
      callback = &callback_;  // Set does not change it while it runs
    }
    (*callback)(std::forward<Args>(args)...);
    MutexLock lock(&mu_);
    if (--running_ == 0) idle_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar idle_;
  std::function<void(Args...)> callback_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  int changing_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::client
