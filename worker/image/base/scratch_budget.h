// SPDX-License-Identifier: Apache-2.0
//
// ScratchBudget: working memory that all decode threads share, beyond what each
// thread has for itself.
//
// A row takes its memory in one piece, before it is computed, and returns it at
// its end: no row that holds memory waits for more, so rows never deadlock. A
// row that turns out to need more is computed again from its beginning, with
// more (RowProgram::Run); rows are pure functions. Waiting rows are served in
// the order of their arrival, so that large rows do not starve.
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
  // The longest that a row waits for others to end; their work is bounded.
  static constexpr Duration kPatience = std::chrono::seconds(60);

  explicit ScratchBudget(uint64_t bytes, Duration patience = kPatience)
      : bytes_(bytes), patience_(patience) {}

  // Waits until `bytes` are free and all earlier callers have been served.
  // kResourceExhausted, a fault of the worker (core/cluster/fault.h): the
  // budget is smaller than `bytes`. kUnavailable, transient: `patience` has
  // passed, or Stop was called.
  absl::Status Take(uint64_t bytes);
  // Takes `bytes` if that is possible without waiting; otherwise returns false.
  bool TryTake(uint64_t bytes);
  void Return(uint64_t bytes);
  // Ends all waits; later ones end at once.
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
  // tickets; the first is next
  std::deque<uint64_t> waiting_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool has_waited_ ABSL_GUARDED_BY(mu_) = false;  // some caller, ever
};

}  // namespace leat::worker
