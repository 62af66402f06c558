// SPDX-License-Identifier: Apache-2.0
//
// ScratchBudget: working memory that all decode threads share, beside what each
// has for itself.
//
// A row takes what it needs in one piece, before it is computed, and gives it
// back at its end: nobody who holds memory waits for more, so rows never wait
// for one another. A row that turns out to need more is computed again from its
// beginning, with more (RowProgram::Run); rows are pure functions. Who waits is
// served in the order of coming, so that large rows are not passed by for ever.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::worker {

class ScratchBudget {
 public:
  // A row waits so long for others to end, which are bounded in work.
  static constexpr Duration kPatience = std::chrono::seconds(60);

  explicit ScratchBudget(uint64_t bytes, Duration patience = kPatience)
      : bytes_(bytes), patience_(patience) {}

  // Waits until so many bytes are free, and those have been served who came
  // before. kResourceExhausted, of the worker (core/cluster/fault.h): there are
  // not so many at all. kUnavailable, transient: not in time, or Stop was called.
  absl::Status Take(uint64_t bytes);
  // The same if nobody has to wait.
  bool TryTake(uint64_t bytes);
  void Return(uint64_t bytes);
  // Ends all waits, and those to come at once.
  void Stop();

  uint64_t bytes() const { return bytes_; }
  uint64_t taken() const;
  size_t waiting() const;

 private:
  const uint64_t bytes_;
  const Duration patience_;
  mutable Mutex mu_;
  CondVar changed_;
  uint64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<uint64_t> waiting_ ABSL_GUARDED_BY(mu_);  // tickets; first: next
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool has_waited_ ABSL_GUARDED_BY(mu_) = false;  // anybody, ever
};

}  // namespace leat::worker
