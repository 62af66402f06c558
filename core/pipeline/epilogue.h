// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: the last operators of a pipeline, which the consumer's device
// computes.
//
// If a field is computed from a uint8 value by normalize, cast and transpose
// alone, the worker may send that value, the head, with a quarter of the bytes
// of a float32. The remaining work is a pure function of (byte, channel) and an
// order of the axes: a table and a permutation give the same bits on every
// device, independent of its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/tensor/tensor.h"

namespace leat {

// Where the epilogue runs. The values are those of leat.v1.Epilogue.
enum class Epilogue : uint8_t { kWorker = 1, kDevice = 2 };
std::string_view Name(Epilogue epilogue);  // "worker", "device"
// 0, which is unset, is kWorker. kInvalidArgument: not a value of Epilogue.
absl::StatusOr<Epilogue> EpilogueFromWire(int value);

// Describes how a row of a field is computed from its head.
struct FieldEpilogue {
  DType dtype = DType::kUint8;  // of the field
  // Columns of the table. 1: one column for all elements; otherwise the head's
  // last axis has this size, and the element's index on it is the column.
  uint32_t channels = 1;
  // 256 × channels values of `dtype`, indexed by byte, then by channel; empty:
  // the bytes are the values.
  std::vector<std::byte> table;
  // Axis i of the field's row is axis perm[i] of the head; empty: no
  // permutation.
  std::vector<int64_t> perm;

  friend bool operator==(const FieldEpilogue&, const FieldEpilogue&) = default;
};

struct SplitGraph {
  // A graph whose outputs are the heads, under the fields' names. Nodes keep
  // their numbers, since random operators draw by them. A node that only the
  // removed operators needed is omitted if it is the last; otherwise a
  // coin_flip, whose value is not used, takes its number.
  CheckedGraph head;
  // Indexed by field; nullopt: the head is the field.
  std::vector<std::optional<FieldEpilogue>> epilogue;
};

// Splits each field by itself: its head is the first uint8 value of its
// trailing chain from which a table can express the rest (the values of a
// channel must be on the head's last axis). If two fields have the same head,
// it is sent twice, which is still smaller than either field in its own type. A
// row of heads is never larger than a row of fields.
SplitGraph SplitEpilogue(const CheckedGraph& graph);

}  // namespace leat
