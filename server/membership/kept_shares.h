// SPDX-License-Identifier: Apache-2.0
//
// KeptShares: which share of the records of its shards each worker keeps in its
// caches, by dataset, as its heartbeats tell. Workers are told of each other's
// (OwnedShards), so that nobody asks for records where there are none.
//
// A share is known in eighths, rounded up, so that 0 is nothing at all; and it
// stays what it was until it is 1/32 beyond that:
//
//   heartbeats   0   0.02   0.12   0.14   0.16   0.14   0.10   0.09
//   is           0   1/8    1/8    1/8    2/8    2/8    2/8    1/8
//
// Changes within kPause are told together. The class is thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::server {

class KeptShares {
 public:
  static constexpr int kSteps = 8;
  static constexpr double kBeyond = 1.0 / 32;
  static constexpr Duration kPause = std::chrono::seconds(5);

  // By dataset, workers whose shares have changed.
  using Changes = std::map<std::string, std::set<std::string>>;

  // Takes all that the worker tells, by dataset. Datasets that it does not tell
  // of are unknown from then on.
  void Note(const std::string& worker,
            const std::map<std::string, double>& shares, MonotonicTime now);
  // Nothing is known of the worker: it is another process, or has gone.
  void Forget(const std::string& worker);
  // nullopt: not known.
  std::optional<double> Of(std::string_view dataset,
                           const std::string& worker) const;

  // When changes are to be told; max(): there are none.
  MonotonicTime due() const;
  // Lets Take give the changes if they are due. Returns whether they are.
  bool Release(MonotonicTime now);
  Changes Take();

 private:
  using Steps = std::map<std::string, int, std::less<>>;  // by dataset

  mutable Mutex mu_;
  std::map<std::string, Steps> workers_ ABSL_GUARDED_BY(mu_);
  Changes changes_ ABSL_GUARDED_BY(mu_), released_ ABSL_GUARDED_BY(mu_);
  MonotonicTime due_ ABSL_GUARDED_BY(mu_) = MonotonicTime::max();
};

}  // namespace leat::server
