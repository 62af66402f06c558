// SPDX-License-Identifier: Apache-2.0
//
// The sizes that pad, slice and reshape produce: the same functions at job
// creation and for each sample.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/tensor/tensor.h"

namespace leat {

// Elements [begin, end) of an axis; both may be outside the axis.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// --- slice ------------------------------------------------------------------

// DALI's rule for an axis of n elements: begin and end are numbers of elements,
// or fractions (floats) of n; `end` may be given by the length. Both are
// rounded to the nearest, halves away from zero.
//   begin = round(start + offset), or round((rel_start + offset) × n)
//   end   = round(begin before rounding + shape)      [or + rel_shape × n,
//           or end, or rel_end × n; none given: n]
// Products are float, except (rel_start + offset + rel_shape) × n.
struct SliceRule {
  enum class Length : uint8_t { kRest, kShape, kRelShape, kEnd, kRelEnd };
  int axis = 0;
  bool relative = false;  // start and offset are fractions of n
  double start = 0;
  Length length = Length::kRest;
  double extent = 0;

  Interval Of(int64_t n, double offset) const;
  // Returns the result's size if it is the same for any n and offset.
  std::optional<int64_t> Fixed() const;
};
// Returns the rules of a node "slice" for a value of `rank` axes.
// kInvalidArgument: names the argument.
absl::StatusOr<std::vector<SliceRule>> SliceRules(const Node& node, int rank);

// --- pad --------------------------------------------------------------------

// Extends an axis of n elements to the larger of n and `shape`, rounded up to a
// multiple of `align`.
struct PadRule {
  int axis = 0;
  int64_t shape = 0;  // 0: not given
  int64_t align = 1;

  int64_t Of(int64_t n) const;
};
absl::StatusOr<std::vector<PadRule>> PadRules(const Node& node, int rank);

// --- reshape ----------------------------------------------------------------

// Returns `shape`, with the sizes of the input's axes that `axes` names; -1
// names no axis. REQUIRES: `axes` is empty or as long as `shape`, and below the
// input's rank.
Shape WithSizesOf(Shape shape, const std::vector<int64_t>& axes,
                  std::span<const int64_t> input);

// Returns `shape`, with its -1, if any, replaced so that it has `elements`
// elements. kInvalidArgument: this is impossible.
absl::StatusOr<Shape> Reshaped(const Shape& shape, int64_t elements);

// Returns the argument `axes`, or the first `all` axes if it is empty.
// kInvalidArgument: not distinct axes of `rank`.
absl::StatusOr<std::vector<int>> AxesOf(const Node& node, int rank, int all);

}  // namespace leat
