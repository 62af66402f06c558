// SPDX-License-Identifier: Apache-2.0
//
// WorkingMemory: accounts for the memory that the row in progress has requested
// on one thread. A row that requests more than its limit fails, and one that
// requests more than it was granted is computed again with more
// (scratch_budget.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/image/base/limits.h"

namespace leat::worker {

// Thread-compatible.
class WorkingMemory {
 public:
  explicit WorkingMemory(const ImageLimits& limits)
      : limits_(limits), granted_(limits.kept_scratch_bytes) {}

  const ImageLimits& limits() const { return limits_; }

  // Makes `buffer` hold at least `bytes` and kRowPadding more. Its contents are
  // lost. kResourceExhausted: the row has requested over max_scratch_bytes.
  // Memory left by earlier rows does not count, so that whether a row fails
  // depends on that row alone. kAborted: the row has requested more than was
  // granted; it is to be computed again.
  absl::Status Reserve(size_t bytes, std::vector<std::byte>* buffer);
  // The same for memory that a library allocates while it decodes an image, and
  // frees before the next one.
  absl::Status Charge(uint64_t bytes);
  // The same for memory that an operator allocates while it computes.
  // kResourceExhausted: as for Reserve.
  absl::Status ChargeOperator(uint64_t bytes);

  // Sets how much the next row may use in all.
  void Grant(uint64_t bytes) { granted_ = bytes; }
  // Returns how much the row in progress has requested.
  uint64_t needed() const { return asked_bytes_ + charged_; }
  // Returns how much the row would have needed when it failed with kAborted; 0
  // if it stayed within the grant.
  uint64_t lacked() const { return lacked_; }
  // Ends the row: requests are reset, and the grant is again the amount that
  // every row has.
  void EndRow();

  // Returns the size in bytes of all vectors that Reserve has made.
  size_t buffer_bytes() const { return buffer_bytes_; }

 private:
  // kAborted: as for Reserve.
  absl::Status Afford();

  const ImageLimits limits_;
  uint64_t granted_;
  uint64_t lacked_ = 0;
  // The requests of the row in progress: the largest one per buffer.
  std::vector<std::pair<const void*, size_t>> asked_;
  size_t asked_bytes_ = 0;
  uint64_t charged_ = 0;  // the most that a library has taken
  size_t buffer_bytes_ = 0;
};

}  // namespace leat::worker
