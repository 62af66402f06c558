// SPDX-License-Identifier: Apache-2.0
//
// Graph is a pipeline as data: stored fields in, tensors out.
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

// Names output `output` of node `node`.
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

// Returns one line per node and output; equal text means equal graphs. Doubles
// are printed exactly (hexadecimal). The text is part of hashes and golden, so
// arguments that were added to an operator later (ArgInfo::added_later) are
// omitted if they have their defaults.
std::string CanonicalText(const Graph& graph);
// Returns the text of one node alone (of the reader, as the key of a dataset).
std::string CanonicalText(const Node& node);

}  // namespace leat
