// SPDX-License-Identifier: Apache-2.0
//
// The operators' signatures: names, arguments, types and shapes. The kernels
// are in worker/.
//
// Check() runs when a job is created, in the client (early) and in the
// coordinator (authoritative), so that a wrong pipeline is rejected before any
// worker receives it; workers run it again and trust no sender.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/tensor/tensor.h"

namespace leat {

// The type of a value on an edge of the graph, for one sample.
struct ValueType {
  enum class Kind : uint8_t {
    kEncoded,  // the bytes of one stored image
    kTensor,   // dtype and shape; a size of -1 differs from sample to sample
  };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kUint8;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

enum class ArgType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings
};

struct ArgInfo {
  std::string name;
  ArgType type;
  std::optional<Value> default_value;  // nullopt: required
  bool per_sample =
      false;  // may be the output of another node (a scalar tensor)
  double
      min = 0,
      max = 0;  // inclusive range of every number; min > max: any finite number
  // Allowed values of a string, or of each entry; empty: any.
  std::vector<std::string> choices;
  std::string doc;  // unit, meaning, default's reason
  // True for an argument added after pipelines with this operator existed: at
  // its default it is not part of the canonical text, so that their hashes
  // stay.
  bool added_later = false;
  // True for a list that may have an entry for each sample. If it is too long
  // for a message, it is a LongList.
  bool of_data = false;
};

struct OperatorInfo {
  std::string name;
  std::string doc;
  int inputs = 0;
  int outputs = 1;
  std::string
      outputs_of;  // if not empty: one output per value of this list argument
  bool variadic = false;      // `inputs` or more; with an output more for each
  bool stored_types = false;  // a reader whose types are read from its index
  bool random = false;        // it draws from the sample's generator
  // True if inputs may be of types that are only carried (IsCarried).
  bool takes_carried = false;
  std::vector<ArgInfo> args;
};

// Returns nullptr if there is no such operator.
const OperatorInfo* FindOperator(std::string_view name);
std::span<const OperatorInfo> AllOperators();

// A graph that passed Check().
struct CheckedGraph {
  Graph graph;  // normalised: unused nodes dropped, defaults filled in, numbers
                // in their argument's type
  std::vector<std::vector<ValueType>> types;  // [node][output]
  uint32_t reader = 0;                        // the reader's node
  // The node whose outputs are what a record has: the reader, or the pack of
  // its outputs. No step computes it, nor a node before it.
  uint32_t stored = 0;
  BatchSchema schema;  // of the outputs; all shapes static
  // False: the types depend on the stored data, which was not given. Arguments
  // are complete; `types` and `schema` are empty.
  bool typed = true;
};

// Checks and completes a graph. kInvalidArgument: names the node and argument,
// its value, what was expected, and for an unknown name the nearest known one.
// Bounds: 1,000 nodes, 100 outputs, 64 MiB per row, kMaxValueBytes per value,
// 16 MiB for the tables of lookup_table.
// `stored`: the types of the reader's outputs from the dataset's index, if its
// arguments do not determine them (stored_types).
absl::StatusOr<CheckedGraph> Check(const Graph& graph,
                                   std::span<const ValueType> stored = {});

}  // namespace leat
