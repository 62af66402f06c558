// SPDX-License-Identifier: Apache-2.0
//
// DamagedIndexes: the datasets whose index has a damaged, missing or unreadable
// block, and the state of their repair.
//
//   a worker reads block b of d   Note(d, b): d is to be listed again
//   the listing brings b          Restored(b): d is whole
//   the listing fails             Listed(d, why); the next note after a pause
//                                 has it listed once more
//
// An entry that no caller has needed for ten minutes is forgotten: the next
// caller that needs it notes it again. There is at most one entry per dataset.
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/status.h"

namespace leat::server {

class DamagedIndexes {
 public:
  struct Damage {
    std::set<Digest> blocks;  // the first kMaxBlocks
    std::string what;         // of the first: names its file
    std::string mending;      // empty: no repair is under way
    bool listing = false;
    Duration pause = kFirstPause;
    MonotonicTime next_listing{}, noted_at{};
  };
  static constexpr size_t kMaxBlocks = 64;
  static constexpr Duration kFirstPause = std::chrono::minutes(1);
  static constexpr Duration kMaxPause = std::chrono::hours(1);
  static constexpr Duration kForgotten = std::chrono::minutes(10);

  // Returns whether the block is noted and no listing is due: noting it again
  // would change nothing but the time.
  bool Renew(const Digest& block, MonotonicTime now) {
    for (auto& [dataset, damage] : damages_) {
      if (!damage.blocks.contains(block)) continue;
      damage.noted_at = now;
      return damage.listing || now < damage.next_listing;
    }
    return false;
  }
  // `lists`: a listing may repair it. Returns true if the caller has to list
  // the dataset now, and then call Listed.
  bool Note(const std::string& dataset, const Digest& block,
            std::string_view what, bool lists, MonotonicTime now) {
    Damage& damage = damages_[dataset];
    if (damage.what.empty()) damage.what = what;
    if (damage.blocks.size() < kMaxBlocks) damage.blocks.insert(block);
    damage.noted_at = now;
    if (!lists) {
      damage.next_listing = now + damage.pause;
      return false;
    }
    if (damage.listing || now < damage.next_listing) return false;
    damage.listing = true;
    damage.mending = "it is listed again, which brings the block back";
    return true;
  }
  // Reports that the dataset's listing is over. The block may still be missing:
  // the dataset has changed, or was cut into other blocks.
  void Listed(const std::string& dataset, const absl::Status& status,
              MonotonicTime now) {
    const auto it = damages_.find(dataset);
    if (it == damages_.end()) return;
    Damage& damage = it->second;
    damage.listing = false;
    damage.next_listing = now + damage.pause;
    damage.pause = std::min(2 * damage.pause, kMaxPause);
    damage.mending =
        status.ok()
            ? std::string(
                  "it was listed again, and what is there now has not this "
                  "block: delete its jobs and create them again")
            : fmt::format("it could not be listed again: {}", Message(status));
  }
  // Returns the datasets that are complete again.
  std::vector<std::string> Restored(const Digest& block) {
    std::vector<std::string> whole;
    for (auto it = damages_.begin(); it != damages_.end();) {
      std::set<Digest>& blocks = it->second.blocks;
      if (blocks.erase(block) == 0 || !blocks.empty()) {
        ++it;
        continue;
      }
      whole.push_back(it->first);
      it = damages_.erase(it);
    }
    return whole;
  }
  void Forget(const std::string& dataset) { damages_.erase(dataset); }
  void Expire(MonotonicTime now) {
    std::erase_if(damages_, [&](const auto& entry) {
      return !entry.second.listing && now - entry.second.noted_at > kForgotten;
    });
  }
  const std::map<std::string, Damage>& all() const { return damages_; }

 private:
  std::map<std::string, Damage> damages_;  // by dataset
};

}  // namespace leat::server
