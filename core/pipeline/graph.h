// SPDX-License-Identifier: Apache-2.0
//
// Graph: a pipeline as data. Stored fields in, tensors out.
//
// A graph has exactly one reader node (its operator's name begins with
// "readers."); every other node is an operator on the outputs of earlier nodes.
// Arguments are constants or outputs of earlier nodes. Value semantics;
// thread-compatible.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/pipeline/long_list.h"

namespace leat {

// Output `output` of node `node`.
struct NodeRef {
  uint32_t node = 0;
  uint32_t output = 0;
  friend auto operator<=>(const NodeRef&, const NodeRef&) = default;
};

using Value = std::variant<bool, int64_t, double, std::string,
                           std::vector<int64_t>, std::vector<double>, NodeRef,
                           std::vector<std::string>, LongList>;

struct Node {
  std::string op;               // as in fn.*: "decode", "random_resized_crop",
                                // "readers.image_folder"
  std::vector<NodeRef> inputs;  // earlier nodes only
  std::map<std::string, Value> args;
  friend bool operator==(const Node&, const Node&) = default;
};

struct Graph {
  std::vector<Node> nodes;  // each after its inputs
  std::vector<std::pair<std::string, NodeRef>>
      outputs;  // name in the batch -> value
  friend bool operator==(const Graph&, const Graph&) = default;
};

// One line a node; equal text means equal graphs. Doubles are printed exactly
// (hexadecimal). Part of hashes: golden, so that arguments that were added to
// an operator later (ArgInfo::added_later) are left out at their defaults.
std::string CanonicalText(const Graph& graph);
// The same for one node alone (the reader: what a dataset is keyed by).
std::string CanonicalText(const Node& node);

}  // namespace leat
