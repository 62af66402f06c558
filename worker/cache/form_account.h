// SPDX-License-Identifier: Apache-2.0
//
// FormAccount: what the forms of JPEG files have saved a worker, and so what it
// may spend to make more of them.
//
// A form costs time that a training of one epoch never gets back. So that a
// service which keeps forms is never behind one that keeps none, forms are made
// of what forms have saved, and of a share of all decodes' time that is lent:
//
//   balance = saved + lent − spent
//
//   saved   what a plain decode takes on average, less what a decode by a form
//           has taken
//   lent    kLent of what each decode has taken
//   spent   what a decode that makes a form has taken, less what a plain one
//           takes on average
//
// A decode makes a form only if the balance covers what that is expected to
// take. So at every moment all decodes together have taken at most 1 + kLent
// times what they would have taken without forms, as far as the averages are
// right.
//
// For example photos that are decoded in 1 ms, in 0.7 ms by a seek index, which
// grows at no cost, and in 0.1 ms by pixels, which take 0.6 ms more to make. In
// the first epoch 2 % of a decode's time pay for pixels of 3 % of the photos.
// In the second 0.3 ms a photo are saved, which pay for pixels of half of them,
// and in the third these pay for all that are left.
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

  // Takes `cost` out of the balance. False: the balance is less.
  bool Pay(Duration cost);
  // What was paid, and turns out to cost something else, or nothing.
  void Return(Duration cost) { balance_ns_ += cost.count(); }

  // Each decode's time.
  void Lend(Duration took);
  // A decode by a form; a negative `time` was lost.
  void Save(Duration time);
  // A decode that has made a form; a negative `cost` was saved. Does not touch
  // what was paid for it, which the caller returns.
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

// TimeOfBytes: how long something takes for each byte of a file, from what the
// last some thousand times took. Thread-safe.
class TimeOfBytes {
 public:
  static constexpr uint32_t kLeast = 8;  // times, before anything is known

  void Add(size_t bytes, Duration took);
  // nullopt: it is not known yet, from so many times.
  std::optional<Duration> Of(size_t bytes, uint32_t least = kLeast) const;
  // As that; what it is at least, with the doubt that a mean of so few leaves:
  // two standard errors less.
  std::optional<Duration> AtLeast(size_t bytes) const;

 private:
  // Of so many in the mean, each newer one weighs as much as one.
  static constexpr uint32_t kMost = 4096;

  mutable Mutex mu_;
  uint32_t count_ ABSL_GUARDED_BY(mu_) = 0;
  // Nanoseconds a byte.
  double mean_ ABSL_GUARDED_BY(mu_) = 0, variance_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
