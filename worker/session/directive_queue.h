// SPDX-License-Identifier: Apache-2.0
//
// DirectiveQueue: directives that wait for a thread, first in, first out, but
// only one at a time per dataset. A directive whose dataset a thread has in
// hand keeps its position, and those after it go first:
//
//   Add(a), Add(a'), Add(b)     Pop: a, Pop: b, Done(a), Pop: a'
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::worker {

// A directive, and the changes that a look at its dataset found.
struct WantedListing {
  v1::IndexDataset directive;
  std::vector<std::string> changes{};
};

class DirectiveQueue {
 public:
  explicit DirectiveQueue(size_t limit) : limit_(limit) {}

  // Returns false, with `wanted` unchanged, if the queue is full or closed.
  bool Add(WantedListing&& wanted) {
    MutexLock lock(&mu_);
    return Append(std::move(wanted));
  }
  // Like Add, for a directive that is newer than those that wait: it takes the
  // position of a waiting one for the same dataset, whose answer is not wanted
  // any more.
  bool AddNewer(WantedListing&& wanted) {
    MutexLock lock(&mu_);
    const auto older = std::find_if(
        waiting_.begin(), waiting_.end(), [&](const WantedListing& each) {
          return DatasetOf(each) == DatasetOf(wanted);
        });
    if (closed_ || older == waiting_.end()) return Append(std::move(wanted));
    *older = std::move(wanted);
    return true;
  }
  // Waits for a directive whose dataset is not in hand; the caller has the
  // dataset in hand until Done. nullopt: closed.
  std::optional<WantedListing> Pop() {
    MutexLock lock(&mu_);
    while (!closed_) {
      const auto first = std::find_if(
          waiting_.begin(), waiting_.end(), [this](const WantedListing& each) {
            mu_.AssertHeld();
            return !in_hand_.contains(DatasetOf(each));
          });
      if (first != waiting_.end()) {
        std::optional<WantedListing> wanted(std::move(*first));
        waiting_.erase(first);
        in_hand_.insert(DatasetOf(*wanted));
        return wanted;
      }
      changed_.Wait(&mu_);
    }
    return std::nullopt;
  }
  void Done(const std::string& dataset_id) {
    MutexLock lock(&mu_);
    in_hand_.erase(dataset_id);
    changed_.NotifyOne();
  }
  // Refuses later directives, and returns none of the waiting ones.
  void Close() {
    MutexLock lock(&mu_);
    closed_ = true;
    changed_.NotifyAll();
  }

 private:
  static const std::string& DatasetOf(const WantedListing& wanted) {
    return wanted.directive.dataset_id();
  }
  bool Append(WantedListing&& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (closed_ || waiting_.size() >= limit_) return false;
    waiting_.push_back(std::move(wanted));
    changed_.NotifyOne();
    return true;
  }

  const size_t limit_;
  Mutex mu_;
  CondVar changed_;
  std::deque<WantedListing> waiting_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> in_hand_ ABSL_GUARDED_BY(mu_);  // ids of datasets
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::worker
