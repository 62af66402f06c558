// SPDX-License-Identifier: Apache-2.0
//
// WorkingMemory: the account of what the row in progress has asked for on one
// thread. A row that asks for more than its limit fails, and one that asks for
// more than it was granted is computed again with more (scratch_budget.h).
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

  // Makes `buffer` hold at least `bytes` and kRowPadding more. Contents are
  // lost. kResourceExhausted: the row has asked for over max_scratch_bytes.
  // What earlier rows have left does not count, so that whether a row fails
  // depends on that row alone.
  // kAborted: more than was granted; the row is to be computed again.
  absl::Status Reserve(size_t bytes, std::vector<std::byte>* buffer);
  // The same for what a library takes while it decodes an image, which is over
  // before the next one.
  absl::Status Charge(uint64_t bytes);

  // What the row that begins may have in all.
  void Grant(uint64_t bytes) { granted_ = bytes; }
  // What the row in progress has asked for.
  uint64_t needed() const { return asked_bytes_ + charged_; }
  // What it would have needed when it failed with kAborted; 0: no more than was
  // granted.
  uint64_t lacked() const { return lacked_; }
  // The row is over: nothing is asked for, and what every row may have is
  // granted.
  void EndRow();

  // Of all vectors that Reserve has made, in bytes.
  size_t buffer_bytes() const { return buffer_bytes_; }

 private:
  // kAborted: as Reserve's.
  absl::Status Afford();

  const ImageLimits limits_;
  uint64_t granted_;
  uint64_t lacked_ = 0;
  // What the row in progress has asked for, of each buffer the most.
  std::vector<std::pair<const void*, size_t>> asked_;
  size_t asked_bytes_ = 0;
  uint64_t charged_ = 0;  // the most that a library has taken
  size_t buffer_bytes_ = 0;
};

}  // namespace leat::worker
