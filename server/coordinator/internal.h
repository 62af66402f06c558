// SPDX-License-Identifier: Apache-2.0
//
// The parts of a Coordinator that its sources share. Not for others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/coordinator.h"

namespace leat::server {

// Declared before the lock is taken: runs what was added after it is released.
// Log lines are among it: a log that nobody reads may block.
class Coordinator::Effects {
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

struct Coordinator::WorkerSession : WokenSession {
  std::string name;
  bool replaced = false;
  bool welcomed = false;
  uint64_t access_version = 0;            // of the list that it was sent
  std::string log_level;                  // to be sent; empty: none
  std::deque<IndexDirective> directives;  // at most Indexing's requests
  std::set<std::string> datasets;         // whose owned shards are to be sent
  // A new worker is told of all datasets, in their order: it has been told of
  // those up to `swept`.
  bool sweeping = true;
  std::string swept;
};

// A job that is deleted, as it was. `info` nullptr: one that was set aside.
struct GoneJob {
  std::shared_ptr<const JobInfo> info;
  TableKey key;
};

// A durable change. Both functions are called with the lock held.
struct Coordinator::Write {
  // What to append; nullopt: nothing, which is fine.
  std::function<absl::StatusOr<std::optional<Event>>(Effects*)> decide;
  std::function<void(const absl::Status&, Effects*)> finish;
};

}  // namespace leat::server
