// SPDX-License-Identifier: Apache-2.0
//
// UnreachedTable: the workers that consumers say they cannot reach, and why.
//
// A consumer that cannot reach any worker ends, often within a second. So what
// it said is kept for a minute after it was last said, for who looks then.
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

  // None of `workers`: the consumer reaches them all. Returns those of which it
  // had not said the same. Of too many consumers the newest are not kept.
  std::vector<UnreachedWorker> Say(const std::string& consumer, Consumer said);
  // By the consumer's name; some may have been kept for too long.
  const std::map<std::string, Consumer>& all() const { return consumers_; }

 private:
  std::map<std::string, Consumer> consumers_;
};

}  // namespace leat::server
