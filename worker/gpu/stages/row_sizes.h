// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a row's values that differ from sample to sample. The host knows
// them before a pixel is decoded, by the rules of the CPU's operators.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// A step whose input or output size differs from row to row.
struct SizedStep {
  Step step;
  Whose whose;
  Shape shape;  // of its result; -1: differs from row to row
};

// Sets the sizes of a value in values[value]. kResourceExhausted: it has more
// than `most` elements.
absl::Status SetSizes(uint32_t value, DType dtype,
                      std::span<const int64_t> sizes, uint64_t most,
                      std::vector<Tensor>* values);

// Sets the sizes of a step's result from its inputs. Other errors are those of
// RowProgram for this row, or for a value that it would not compute.
absl::Status SetSizes(const SizedStep& sized, const RowInput& input,
                      uint64_t most, std::vector<Tensor>* values);

}  // namespace leat::worker
