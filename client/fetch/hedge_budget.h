// SPDX-License-Identifier: Apache-2.0
//
// HedgeBudget bounds how many rows may be requested a second time because they
// are late. Without it a cold start, or storage that pauses for a moment, would
// cause every row to be requested two or three times.
//
// Each row that is requested for the first time adds `hedge_share` of a row.
// The time for which the consumer waits adds some too, so that rows can leave
// workers that have stopped: all of the head's rows within a second while a
// worker that could deliver them is idle. At most `hedge_burst` rows, or the
// share of the head's rows, are saved.
//
// Thread-compatible. Time: callers pass `now`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "client/fetch/fetcher_config.h"
#include "core/clock.h"

namespace leat::client {

class HedgeBudget {
 public:
  // `config` outlives this.
  explicit HedgeBudget(const FetcherConfig& config)
      : config_(config), rows_(config.hedge_burst) {}

  // Reports how many rows were requested for the first time.
  void Asked(uint64_t rows) {
    Add(config_.hedge_share * static_cast<double>(rows));
  }
  // The workers' activity while the consumer waits.
  enum class Workers : uint8_t {
    kSilent,   // none delivers: another would hardly be faster
    kDeliver,  // some do
    kIdle,     // one has nothing outstanding
  };
  // Reports that the consumer waits for a step of `rows` rows.
  void Wait(size_t rows, Workers workers, MonotonicTime now) {
    step_rows_ = rows;
    rate_ = static_cast<double>(rows) * ShareOf(workers);
    if (waited_until_ != MonotonicTime{})
      Add(rate_ * std::chrono::duration<double>(now - waited_until_).count());
    waited_until_ = now;
  }
  void StopWaiting() { waited_until_ = {}; }
  bool spent() const { return rows_ < 1; }
  // Returns false if no row may be requested a second time now.
  bool Take() {
    if (spent()) return false;
    rows_ -= 1;
    return true;
  }
  // Returns one row to the budget, after a Take that was not used.
  void GiveBack() { Add(1); }
  // Returns when Take will return true if the consumer waits on. After `now`.
  MonotonicTime Next(MonotonicTime now) const {
    const double missing = std::max(0.0, 1 - rows_);
    const double seconds =
        rate_ > 0 ? std::min(missing / rate_, kLongest) : kLongest;
    return now + std::chrono::milliseconds(1) +
           std::chrono::duration_cast<Duration>(
               std::chrono::duration<double>(seconds));
  }

 private:
  static constexpr double kWithoutDelivery = 0.1;
  static constexpr double kLongest = 60;  // seconds

  // Returns the share of the head's rows that may be hedged per second.
  double ShareOf(Workers workers) const {
    switch (workers) {
      case Workers::kSilent:
        return config_.hedge_share * kWithoutDelivery;
      case Workers::kDeliver:
        return config_.hedge_share;
      case Workers::kIdle:
        return 1;
    }
    return 0;
  }
  void Add(double rows) {
    const double most =
        std::max(static_cast<double>(config_.hedge_burst),
                 config_.hedge_share * static_cast<double>(step_rows_));
    rows_ = std::min(rows_ + rows, most);
  }

  const FetcherConfig& config_;
  double rows_;
  double rate_ = 0;  // per second
  size_t step_rows_ = 0;
  MonotonicTime waited_until_{};  // zero: the consumer does not wait
};

}  // namespace leat::client
