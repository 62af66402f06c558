// SPDX-License-Identifier: Apache-2.0
//
// RowInput: what a row is computed from: a sample as it is stored, and what its
// random draws are made of.
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

// One sample as stored: a field for each of the reader's outputs. Read only
// during Run.
struct RowInput {
  uint64_t epoch = 0;  // of the sample's own draws: of a stream, its pass
  uint64_t sample = 0;
  std::span<const StoredField> fields;
  // What a whole batch shares is drawn by these: the same in all rows of a
  // step.
  uint64_t step = 0;
  uint64_t step_epoch = 0;
  PartnerRow* partner =
      nullptr;  // of programs with `partner`; others ignore it
  // The row only fills the batch: where there is a kValidField, it says false.
  bool padding = false;
  // Who keeps forms of the sample's JPEG (jpeg/forms/keeper.h); null:
  // nobody.
  FormKeeper* forms = nullptr;
};

// The row of the same step that `partner` looks at.
class PartnerRow {
 public:
  using Compute = std::function<absl::Status(const RowInput& partner)>;

  virtual ~PartnerRow() = default;
  // The input of the partner's own sample, for who wants to look at it first:
  // whatever is wrong with it is With's to deal with. Valid until With is
  // called, and as long as this. Errors: why the sample cannot be read.
  virtual absl::StatusOr<RowInput> Input() = 0;
  // Calls `compute` with the partner's input: of its sample or, where that
  // turns out to be bad and the job says so, of what takes its place. Returns
  // what the last call did; what that was given stays valid as long as this.
  // Called at most once in a Run, and not if no value of the partner's is
  // needed.
  virtual absl::Status With(const Compute& compute) = 0;
};

}  // namespace leat::worker
