// SPDX-License-Identifier: Apache-2.0
//
// Statistics of groups of elements. A thread adds a run of a group's elements,
// and a later launch adds the runs, in the order that formulas/statistics.h
// defines: a sum in another order has other bits. C++ and CUDA compile this
// file.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/map.h"
#include "worker/image/formulas/statistics.h"

namespace leat::worker {

// Returns element `index` along the axes; the last axis is the fastest.
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

// Returns the sum of run `run` of a group whose first element is `first`, or of
// the squares of the distances from `mean`.
LEAT_PIXEL double RunSum(const StandardRow& row, uint64_t first, uint32_t run,
                         bool squares, double mean) {
  // There is at least one axis; along the last one the step is constant.
  StageAxes outer = row.summed;
  --outer.count;
  const uint64_t size = row.summed.sizes[outer.count];
  const uint32_t bytes = StageSizeOf(row.in_dtype);
  const uint64_t step = row.summed.steps[outer.count];
  const uint64_t count = CountAlong(outer) * size;
  uint64_t at = uint64_t{run} * kStandardRun;
  const uint64_t end = at + kStandardRun < count ? at + kStandardRun : count;
  double sum = 0;
  while (at < end) {
    const uint64_t column = at % size;
    uint64_t from =
        row.in +
        (first + ElementAlong(outer, at / size) + column * step) * bytes;
    uint64_t line = at + size - column;
    if (line > end) line = end;
    for (; at < line; ++at, from += step * bytes) {
      const float x = ValueAs<float>(LoadValue(from, row.in_dtype));
      sum += squares ? SquareOf(x, mean) : static_cast<double>(x);
    }
  }
  return sum;
}

// Returns the sum of a group's runs; `sums` has the sum of each run.
LEAT_PIXEL double SumOfRuns(const StandardRow& row, uint64_t sums,
                            uint32_t group) {
  double sum = 0;
  for (uint32_t run = 0; run < row.runs; ++run)
    sum += reinterpret_cast<const double*>(
        AtAddress(sums))[uint64_t{run} * row.groups + group];
  return sum;
}

LEAT_PIXEL double GivenAt(uint64_t given, uint32_t step, uint32_t group) {
  return reinterpret_cast<const double*>(
      AtAddress(given))[uint64_t{step} * group];
}

// Returns the sum of a group; a single run is added here.
LEAT_PIXEL double GroupSum(const StandardRow& row, uint64_t sums,
                           uint32_t group, bool squares, double mean) {
  if (row.runs > 1) return SumOfRuns(row, sums, group);
  return RunSum(row, ElementAlong(row.kept, group), 0, squares, mean);
}

LEAT_PIXEL double MeanOf(const StandardRow& row, uint32_t group) {
  if (row.means != 0) return GivenAt(row.means, row.mean_step, group);
  return GroupSum(row, row.sums, group, false, 0) /
         static_cast<double>(CountAlong(row.summed));
}

LEAT_PIXEL double GroupVariance(const StandardRow& row, uint32_t group,
                                double mean) {
  if (row.deviations != 0) {
    const double given = GivenAt(row.deviations, row.deviation_step, group);
    return given * given;
  }
  return VarianceOf(GroupSum(row, row.squares, group, true, mean),
                    static_cast<double>(CountAlong(row.summed)), row.ddof);
}

// Computes a run of a group, or the factors of a group.
LEAT_PIXEL void StandardThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const StandardRow& row =
      reinterpret_cast<const StandardRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const uint32_t group = thread % row.groups;
  if (row.part == StandardPart::kFactors) {
    auto* const out = reinterpret_cast<float*>(AtAddress(row.head.out));
    const double mean = MeanOf(row, group);
    const double variance = GroupVariance(row, group, mean);
    out[2 * uint64_t{group}] = static_cast<float>(mean);
    out[2 * uint64_t{group} + 1] =
        StandardFactor(variance, row.epsilon, row.scale);
    return;
  }
  const bool squares = row.part == StandardPart::kSquares;
  reinterpret_cast<double*>(AtAddress(row.head.out))[thread] =
      RunSum(row, ElementAlong(row.kept, group), thread / row.groups, squares,
             squares ? MeanOf(row, group) : 0);
}

}  // namespace leat::worker
