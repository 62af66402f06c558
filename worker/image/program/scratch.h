// SPDX-License-Identifier: Apache-2.0
//
// Scratch: the working memory of one thread that computes rows.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "worker/image/base/limits.h"

namespace leat::worker {

// A thread's working memory: decoder, rows, coefficients. It stays from row to
// row; after a row that made it larger than kept_scratch_bytes it is freed, so
// that a few huge images do not occupy memory on every thread.
class Scratch {
 public:
  explicit Scratch(const ImageLimits& limits);
  ~Scratch();
  struct State;
  State* state() { return state_.get(); }
  // Takes from the budget what the row lacked in its previous attempt. Without
  // such an attempt, it takes what the previous row needed, if that is
  // available at once. Errors: as for ScratchBudget::Take.
  absl::Status BeginRow();
  // True if the row lacked working memory and is to be computed again.
  bool EndRow();

 private:
  std::unique_ptr<State> state_;
  uint64_t taken_ = 0;         // from the budget
  uint64_t taken_before_ = 0;  // in the row's last attempt
  uint64_t lacked_ = 0;        // what the row needed in all
  uint64_t needed_ = 0;        // by the last row
};

}  // namespace leat::worker
