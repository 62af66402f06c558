// SPDX-License-Identifier: Apache-2.0
//
// RowProgram: a checked pipeline compiled for the CPU; computes one row at a
// time.
//
// Operators that follow a decode and read a window of it (random_resized_crop,
// crop, resize, flip) are fused into one partial decode; the bytes are those of
// decoding everything first. Only the values that the outputs need are
// computed: where a sample's flag chooses between two values (`where`), the
// other one is not computed, nor is anything that only it needs. Immutable
// after Compile; Run is thread-safe if each thread has its own Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/image/base/row_input.h"

namespace leat::worker {

class Scratch;

// The draw of a random operator for a row.
struct NodeDraw {
  uint32_t node = 0;
  // A number, a flag as 0 or 1, or a window as y, x, height and width in pixels
  // of the image that it is cut from.
  std::vector<double> values;
  std::string text;     // for operations
  std::string unknown;  // the reason if both are empty
};

class RowProgram {
 public:
  // kUnimplemented: an operator without a CPU kernel.
  // `fuse` false: every operator runs by itself, on images decoded whole; this
  // is slow, with the same bytes (for tests).
  static absl::StatusOr<std::unique_ptr<RowProgram>> Compile(
      const CheckedGraph& graph, bool fuse = true);
  ~RowProgram();

  // Computes a row: outputs[f] receives field f of the schema, exactly
  // row_bytes long, decoded straight into place. kDataLoss: a corrupt or
  // truncated image. kInvalidArgument: not an image that can be decoded (says
  // what it looks like). kResourceExhausted: over a limit (names it). After an
  // error the contents of `outputs` are unspecified. May wait for working
  // memory and compute the row again (base/scratch_budget.h), and returns
  // errors of ScratchBudget::Take, too.
  absl::Status Run(const RowInput& input, Scratch& scratch,
                   std::span<const std::span<std::byte>> outputs) const;

  // Returns what Run draws for this row, in the order of nodes, including draws
  // that nothing needs. Without fields in `input`, draws that depend on the
  // sample are unknown. The partner is not read.
  std::vector<NodeDraw> Draws(const RowInput& input, Scratch& scratch) const;
  // True if fields would make more draws known.
  bool draws_need_fields() const;

  struct State;

 private:
  explicit RowProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
