// SPDX-License-Identifier: Apache-2.0
//
// PackNode is a node of the operator "pack", read.
//
// The node's inputs are outputs of the reader. A packed row is a sample of the
// dataset: records, caches and positions count rows, not documents. So the
// node's outputs are the values that a record has, and no step of a row's
// program computes them (CheckedGraph::stored).
//
// A value; any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/packing.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/tensor/tensor.h"

namespace leat {

struct PackNode {
  Packing packing;
  std::vector<uint32_t> outputs;    // of the reader: the values that are packed
  std::vector<double> fill_values;  // one for each value, or one for all

  double FillOf(size_t value) const {
    return fill_values.size() == 1 ? fill_values[0] : fill_values[value];
  }
  friend bool operator==(const PackNode&, const PackNode&) = default;

  // Returns whether `dtype` can store the padding of this value: whole numbers
  // exactly, others as the nearest one that is finite.
  bool FillFits(size_t value, DType dtype) const;
  // Returns one element of the padding. REQUIRES: FillFits.
  std::vector<std::byte> FillBytes(size_t value, DType dtype) const;
};

inline constexpr size_t kMaxPackedValues = 16;

// kInvalidArgument: CheckPacking refuses the packing, other than 1 to
// kMaxPackedValues values, or other than one number of padding, or one a value.
absl::Status CheckPackNode(const PackNode& node);

// Checks the types of the values that are packed, in their order.
// kInvalidArgument: one is no tensor whose first size alone is open, it cannot
// store its padding, or a row would have over kMaxRowBytes. REQUIRES: as many
// types as values.
absl::Status CheckPackedTypes(const PackNode& node,
                              std::span<const ValueType> types);
// Returns the bytes of one element of a packed value: of all but its first
// axis. REQUIRES: CheckPackedTypes.
size_t PackedElementBytes(const ValueType& type);

// kInvalidArgument names the argument, its value and what was expected.
// REQUIRES: its operator is "pack", and its arguments are complete and have their types.
absl::StatusOr<PackNode> ReadPackNode(const Node& node);

// Returns PackingText, the values and their padding: the text that names the
// packed rows of a dataset.
std::string CanonicalText(const PackNode& node);

}  // namespace leat
