// SPDX-License-Identifier: Apache-2.0
//
// The operators' signatures: names, arguments, types and shapes. The kernels
// live in worker/.
//
// Check() is run when a job is created, by the client (early) and the
// coordinator (authoritative), so that a wrong pipeline is refused before any
// worker sees it; workers run it again and trust nobody.
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

// What flows along an edge of the graph, for one sample.
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
  std::vector<std::string> choices;  // of a string, or of each; empty: any
  std::string doc;                   // unit, meaning, default's reason
  // Younger than pipelines that exist: at its default it is not part of the
  // canonical text, so that their hashes stay.
  bool added_later = false;
  // A list that may have an entry for each sample: too long for a message, it
  // is a LongList.
  bool of_data = false;
};

struct OperatorInfo {
  std::string name;
  std::string doc;
  int inputs = 0;
  int outputs = 1;
  std::string
      outputs_of;  // not empty: as many as this list argument has values
  bool stored_types = false;  // a reader whose types are known by its index
  bool random = false;        // draws from the sample's generator
  std::vector<ArgInfo> args;
};

// nullptr: no such operator.
const OperatorInfo* FindOperator(std::string_view name);
std::span<const OperatorInfo> AllOperators();

// A graph that passed.
struct CheckedGraph {
  Graph graph;  // normalised: unused nodes dropped, defaults filled in, numbers
                // in their argument's type
  std::vector<std::vector<ValueType>> types;  // [node][output]
  uint32_t reader = 0;                        // the reader's node
  BatchSchema schema;  // of the outputs; all shapes static
  // False: what is stored decides, and was not given. Arguments are complete,
  // `types` and `schema` are empty.
  bool typed = true;
};

// kInvalidArgument: says which node and argument, its value, what was expected,
// and for an unknown name the nearest known one. Bounds: 1,000 nodes, 100
// outputs, 64 MiB a row. `stored`: what the reader gives, where its arguments
// do not say it (stored_types): from the dataset's index.
absl::StatusOr<CheckedGraph> Check(const Graph& graph,
                                   std::span<const ValueType> stored = {});

}  // namespace leat
