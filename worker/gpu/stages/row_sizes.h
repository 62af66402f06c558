// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a row's values that differ from sample to sample. The host knows
// them before a pixel is decoded, by the rules that the CPU runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// A step whose result, or what it is made of, has sizes of the row's own.
struct SizedStep {
  Step step;
  Whose whose;
  Shape shape;  // of its result; -1: the row's own
};

// Sets the sizes of a value in values[value]. kResourceExhausted: it has more
// than `most` elements.
absl::Status SetSizes(uint32_t value, DType dtype,
                      std::span<const int64_t> sizes, uint64_t most,
                      std::vector<Tensor>* values);

// The same of a step's result, by the sizes of its inputs. Other errors: what
// RowProgram would say of the row, or of a value that it would not compute.
absl::Status SetSizes(const SizedStep& sized, uint64_t seed,
                      const RowInput& input, uint64_t most,
                      std::vector<Tensor>* values);

}  // namespace leat::worker
