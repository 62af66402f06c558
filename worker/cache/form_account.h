// SPDX-License-Identifier: Apache-2.0
//
// FormAccount: the time that decoded forms have saved a worker, and
// therefore the time that it may spend on making more of them.
//
// A form costs time that a training of one epoch never gets back. So that a
// service which keeps forms is never slower than one that keeps none, forms are
// paid for by what forms have saved, and by an advance: a share of all decodes'
// time.
//
//   balance = saved + lent − spent
//
//   saved   the mean time of a plain decode, minus the time of a decode by a
//           form
//   lent    kLent of the time of each decode
//   spent   the time of a decode that makes a form, minus the mean time of a
//           plain one
//
// A decode makes a form only if the balance covers the expected cost. So at
// every moment all decodes together have taken at most 1 + kLent times what
// they would have taken without forms, as far as the averages are right.
//
// For example, photos are decoded in 1 ms, in 0.7 ms by a seek index, which
// grows at no cost, and in 0.1 ms by pixels, which take 0.6 ms more to make. In
// the first epoch 2 % of a decode's time pays for pixels of 3 % of the photos.
// In the second, 0.3 ms per photo are saved, which pays for pixels of half of
// them, and in the third these pay for all that are left.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class FormAccount {
 public:
  static constexpr double kLent = 0.02;

  // Takes `cost` out of the balance. Returns false if the balance is less.
  bool Pay(Duration cost);
  // Gives back an amount that was paid but not spent.
  void Return(Duration cost) { balance_ns_ += cost.count(); }

  // Counts the time of each decode.
  void Lend(Duration took);
  // Counts a decode by a form; a negative `time` was lost.
  void Save(Duration time);
  // Counts a decode that has made a form; a negative `cost` was saved. Does not
  // touch what was paid for it, which the caller returns.
  void Spend(Duration cost);

  struct Totals {
    Duration saved{0}, lent{0}, spent{0};
  };
  Totals totals() const;
  Duration balance() const { return Duration(balance_ns_); }

 private:
  std::atomic<int64_t> balance_ns_{0};
  std::atomic<int64_t> saved_ns_{0}, lent_ns_{0}, spent_ns_{0};
};

// TimeOfBytes: the time per byte of a file that an operation takes, from the
// last few thousand measurements. Thread-safe.
class TimeOfBytes {
 public:
  static constexpr uint32_t kLeast = 8;  // measurements, before a time is known

  void Add(size_t bytes, Duration took);
  // Returns nullopt if it is not known yet, from at least `least` measurements.
  std::optional<Duration> Of(size_t bytes, uint32_t least = kLeast) const;
  // Like Of; returns a lower bound that allows for the error of a mean of so
  // few: two standard errors less.
  std::optional<Duration> AtLeast(size_t bytes) const;

 private:
  // The measurements in the mean; each newer one has the weight of one of them.
  static constexpr uint32_t kMost = 4096;

  mutable Mutex mu_;
  uint32_t count_ ABSL_GUARDED_BY(mu_) = 0;
  // Nanoseconds per byte.
  double mean_ ABSL_GUARDED_BY(mu_) = 0, variance_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
