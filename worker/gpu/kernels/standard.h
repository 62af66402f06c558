// SPDX-License-Identifier: Apache-2.0
//
// Statistics of groups of elements. A thread has a group, and adds its elements
// in their order in memory, as the CPU does: a sum of floats in another order
// has other bits.
// C++ and CUDA compile this file.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/map.h"
#include "worker/image/formulas/statistics.h"

namespace leat::worker {

// Element number `index` along the axes, of which the last is the fastest.
LEAT_PIXEL uint64_t ElementAlong(const StageAxes& axes, uint64_t index) {
  uint64_t element = 0;
  for (uint32_t axis = axes.count; axis-- > 0;) {
    element += index % axes.sizes[axis] * axes.steps[axis];
    index /= axes.sizes[axis];
  }
  return element;
}
LEAT_PIXEL uint64_t CountAlong(const StageAxes& axes) {
  uint64_t count = 1;
  for (uint32_t axis = 0; axis < axes.count; ++axis) count *= axes.sizes[axis];
  return count;
}

// The sum of a group whose first element is `first`, or of the squares of the
// distances from `mean`.
LEAT_PIXEL double GroupSum(const StandardRow& row, uint64_t first, bool squares,
                           double mean) {
  // There is at least one axis; along the last one the step is constant.
  StageAxes outer = row.summed;
  --outer.count;
  const uint32_t size = row.summed.sizes[outer.count];
  const uint32_t bytes = StageSizeOf(row.in_dtype);
  const uint64_t step = uint64_t{row.summed.steps[outer.count]} * bytes;
  const uint64_t lines = CountAlong(outer);
  double sum = 0;
  for (uint64_t line = 0; line < lines; ++line) {
    uint64_t at = row.in + (first + ElementAlong(outer, line)) * bytes;
    for (uint32_t i = 0; i < size; ++i, at += step) {
      const float x = ValueAs<float>(LoadValue(at, row.in_dtype));
      sum = squares ? AddSquare(sum, x, mean) : sum + static_cast<double>(x);
    }
  }
  return sum;
}

LEAT_PIXEL double GivenAt(uint64_t given, uint32_t step, uint32_t group) {
  return reinterpret_cast<const double*>(
      AtAddress(given))[uint64_t{step} * group];
}

// A group.
LEAT_PIXEL void StandardThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const StandardRow& row =
      reinterpret_cast<const StandardRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const uint64_t first = ElementAlong(row.kept, thread);
  const auto count = static_cast<double>(CountAlong(row.summed));
  const double mean = row.means != 0 ? GivenAt(row.means, row.mean_step, thread)
                                     : GroupSum(row, first, false, 0) / count;
  double variance;
  if (row.deviations != 0) {
    const double given = GivenAt(row.deviations, row.deviation_step, thread);
    variance = given * given;
  } else {
    variance = VarianceOf(GroupSum(row, first, true, mean), count, row.ddof);
  }
  auto* const out = reinterpret_cast<float*>(AtAddress(row.head.out));
  out[2 * uint64_t{thread}] = static_cast<float>(mean);
  out[2 * uint64_t{thread} + 1] =
      StandardFactor(variance, row.epsilon, row.scale);
}

}  // namespace leat::worker
