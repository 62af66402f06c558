// SPDX-License-Identifier: Apache-2.0
//
// KeptShares: the fraction of its shards' records that each worker caches, by
// dataset, as heartbeats report it. Workers learn each other's fractions
// (OwnedShards), so that they do not request records where none are cached.
//
// A fraction is kept in eighths, rounded up, so that 0 means no record at all;
// it changes only when the reported value is beyond it by 1/32:
//
//   heartbeats   0   0.02   0.12   0.14   0.16   0.14   0.10   0.09
//   is           0   1/8    1/8    1/8    2/8    2/8    2/8    1/8
//
// Changes within kPause are sent together. The class is thread-safe.
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

  // By dataset, the workers whose fractions have changed.
  using Changes = std::map<std::string, std::set<std::string>>;

  // Replaces all fractions of the worker. Datasets that are not in `shares` are
  // unknown from then on.
  void Note(const std::string& worker,
            const std::map<std::string, double>& shares, MonotonicTime now);
  // Forgets the worker: it is another process, or has gone.
  void Forget(const std::string& worker);
  // Returns nullopt if it is unknown.
  std::optional<double> Of(std::string_view dataset,
                           const std::string& worker) const;

  // Returns when changes are to be sent; max(): there are none.
  MonotonicTime due() const;
  // Lets Take return the changes if they are due. Returns whether they are.
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
