// SPDX-License-Identifier: Apache-2.0
//
// RowInput: the input of a row's computation: a sample as it is stored, and the
// numbers that key its random draws.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

class FormKeeper;
class PartnerRow;

// One sample as stored, with a field for each of the reader's outputs. Read
// only during Run.
struct RowInput {
  uint64_t seed = 0;   // of all draws: the job's
  uint64_t epoch = 0;  // of the sample's own draws; in a stream, its pass
  uint64_t sample = 0;
  std::span<const StoredField> fields;
  // Key the draws that a whole batch shares: the same in all rows of a step.
  uint64_t step = 0;
  uint64_t step_epoch = 0;
  PartnerRow* partner =
      nullptr;  // for programs with `partner`; others ignore it
  // True if the row only fills the batch; its kValidField, if any, is then
  // false.
  bool padding = false;
  // Keeps decoded forms of the sample's JPEG (jpeg/forms/keeper.h); nullptr: no
  // forms are kept.
  FormKeeper* forms = nullptr;
};

// The row of the same step that operator `partner` reads.
class PartnerRow {
 public:
  using Compute = std::function<absl::Status(const RowInput& partner)>;

  virtual ~PartnerRow() = default;
  // Returns the input of the partner's own sample, for a caller that wants to
  // inspect it first; With deals with any fault in it. Valid until With is
  // called, and as long as this object. Errors: the sample cannot be read.
  virtual absl::StatusOr<RowInput> Input() = 0;
  // Calls `compute` with the partner's input: its sample or, if that turns out
  // to be bad and the job says so, the sample that replaces it. Returns the
  // status of the last call; the input of that call stays valid as long as this
  // object. Called at most once per Run, and not at all if no value of the
  // partner is needed.
  virtual absl::Status With(const Compute& compute) = 0;
};

}  // namespace leat::worker
