// SPDX-License-Identifier: Apache-2.0
//
// UnreachedTable: the workers that consumers cannot reach, and why.
//
// A consumer that cannot reach any worker ends, often within a second. Its last
// report is therefore kept for a minute, so that people can still see it.
//
// Thread-compatible; the owner locks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "server/state/types.h"

namespace leat::server {

class UnreachedTable {
 public:
  struct Consumer {
    std::string job, host;
    std::vector<UnreachedWorker> workers;
    MonotonicTime said_at{};
  };
  static constexpr size_t kMostConsumers = 256;
  static constexpr Duration kKept = std::chrono::minutes(1);

  // `workers` empty: the consumer reaches all workers. Returns those that it
  // had not reported in the same way before. Beyond kMostConsumers new
  // consumers are not kept.
  std::vector<UnreachedWorker> Say(const std::string& consumer, Consumer said);
  // By the consumer's name; may include entries that are older than kKept.
  const std::map<std::string, Consumer>& all() const { return consumers_; }

 private:
  std::map<std::string, Consumer> consumers_;
};

}  // namespace leat::server
