// SPDX-License-Identifier: Apache-2.0
//
// TimedStore wraps another store and measures what waits for the disk: how long
// writes took, and whether one hangs.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "server/store/store.h"

namespace leat::server {

class TimedStore final : public Store {
 public:
  // Upper bounds of the histogram's buckets.
  static constexpr std::array<double, 12> kSeconds = {
      0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};

  struct Times {
    // Number of writes that took up to kSeconds[i], and longer than kSeconds[i
    // - 1]; the last entry counts those that took longer than all bounds.
    std::array<uint64_t, kSeconds.size() + 1> counts{};
    uint64_t failed = 0;
    double seconds = 0;
    std::optional<MonotonicTime> writing_since;  // nullopt: no write is running
  };

  // `clock` outlives it.
  TimedStore(std::unique_ptr<Store> store, const Clock* clock)
      : store_(std::move(store)), clock_(clock) {}

  // Returns how long the calls of Append took.
  Times times() const;

  std::string description() const override { return store_->description(); }
  bool durable() const override { return store_->durable(); }
  uint64_t sequence() const override { return store_->sequence(); }
  absl::Status Replay(
      const std::function<absl::Status(const Event&)>& apply) override {
    return store_->Replay(apply);
  }
  absl::Status Append(const Event& event) override;
  absl::Status Compact(std::span<const Event> live) override {
    return store_->Compact(live);
  }
  std::string losses() const override { return store_->losses(); }
  BlockStore& blocks() override { return store_->blocks(); }

 private:
  const std::unique_ptr<Store> store_;
  const Clock* const clock_;
  mutable Mutex mu_;
  Times times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
