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
// that a few huge images do not keep memory on every thread.
class Scratch {
 public:
  explicit Scratch(const ImageLimits& limits);
  ~Scratch();
  struct State;
  State* state() { return state_.get(); }
  // Takes of the budget what the row lacked when it was tried before, or else,
  // if that is there at once, what the row before needed. Errors: as
  // ScratchBudget::Take's.
  absl::Status BeginRow();
  // Whether the row lacked working memory: it is to be computed again then.
  bool EndRow();

 private:
  std::unique_ptr<State> state_;
  uint64_t taken_ = 0;         // of the budget
  uint64_t taken_before_ = 0;  // by the row's last try
  uint64_t lacked_ = 0;        // what it needed in all
  uint64_t needed_ = 0;        // by the last row
};

}  // namespace leat::worker
