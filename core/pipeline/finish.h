// SPDX-License-Identifier: Apache-2.0
//
// The end of a pipeline, left to the consumer's device.
//
// Where a field is made of a uint8 value by normalize, cast and transpose
// alone, the worker may send that value, the head, a quarter of the bytes of a
// float32. What is left to do is a pure function of (byte, channel) and an
// order of the axes: a table and a permutation, the same bits on every device,
// whatever its arithmetic is like.
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

// Where the end of the pipeline runs. The values are the wire's
// (leat.v1.Finish).
enum class Finish : uint8_t { kWorker = 1, kDevice = 2 };
std::string_view Name(Finish finish);  // "worker", "device"
// 0, which is unset, is kWorker. kInvalidArgument: none of them.
absl::StatusOr<Finish> FinishFromWire(int value);

// From the head of a field to the field, for each row.
struct FieldFinish {
  DType dtype = DType::kUint8;  // of the field
  // Columns of the table. 1: one for all elements; otherwise the head's last
  // axis has this size, and the element's place on it is the column.
  uint32_t channels = 1;
  // 256 × channels values of `dtype`, byte after byte; empty: the bytes are the
  // values.
  std::vector<std::byte> table;
  // Axis i of the field's row is axis perm[i] of the head's; empty: the same.
  std::vector<int64_t> perm;

  friend bool operator==(const FieldFinish&, const FieldFinish&) = default;
};

struct SplitGraph {
  // Its outputs are the heads, under the fields' names. Nodes keep their
  // numbers, since random operators draw by them. A node that only the ends
  // needed is left out if it is the last; otherwise a coin_flip, whose value is
  // not used, keeps its number.
  CheckedGraph head;
  // Indexed by field; nullopt: the head is the field.
  std::vector<std::optional<FieldFinish>> finish;
};

// Each field by itself: its head is the first uint8 value of its trailing
// chain from which on a table can say what happens (values of a channel must
// stand on the head's last axis). If two fields have the same head, it is sent
// twice, which is still smaller than either field in its own type. A row of
// heads is never larger than a row of fields.
SplitGraph SplitFinish(const CheckedGraph& graph);

}  // namespace leat
