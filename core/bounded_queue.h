// SPDX-License-Identifier: Apache-2.0
//
// BoundedQueue is a first-in, first-out queue between threads. It has a limit,
// and can be closed.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/mutex.h"

namespace leat {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // Returns false, with `item` untouched, if the queue is full or closed.
  bool TryPush(T&& item) {
    MutexLock lock(&mu_);
    if (closed_ || items_.size() >= limit_) return false;
    items_.push_back(std::move(item));
    not_empty_.NotifyOne();
    return true;
  }
  // Waits for an item. Returns nullopt if the queue is closed and empty, or has
  // no item by `deadline`.
  std::optional<T> Pop(MonotonicTime deadline) {
    MutexLock lock(&mu_);
    while (items_.empty() && !closed_)
      if (!not_empty_.WaitUntil(&mu_, deadline) && items_.empty())
        return std::nullopt;
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }
  // Refuses further items; items in the queue can still be popped.
  void Close() {
    MutexLock lock(&mu_);
    closed_ = true;
    not_empty_.NotifyAll();
  }
  size_t size() const {
    MutexLock lock(&mu_);
    return items_.size();
  }

 private:
  const size_t limit_;
  mutable Mutex mu_;
  CondVar not_empty_;
  std::deque<T> items_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat
