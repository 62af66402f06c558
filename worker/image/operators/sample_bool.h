// SPDX-License-Identifier: Apache-2.0
//
// SampleBool: a bool argument that is a constant, or the value of another node.
#pragma once

#include <optional>

#include "core/pipeline/operators.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {

class SampleBool {
 public:
  static SampleBool Of(const CheckedGraph& graph, uint32_t node,
                       const char* name) {
    SampleBool flag;
    const Node& op = graph.graph.nodes[node];
    const Value& value = op.args.at(name);
    if (std::holds_alternative<bool>(value)) {
      flag.constant_ = std::get<bool>(value);
      return flag;
    }
    size_t place = 0;  // among the arguments that may be per sample
    for (const ArgInfo& info : FindOperator(op.op)->args) {
      if (info.name == name) flag.place_ = place;
      place += info.per_sample;
    }
    return flag;
  }

  bool In(const OperatorCall& call) const {
    return place_ ? call.args[*place_]->data[0] != std::byte{0} : constant_;
  }

 private:
  bool constant_ = false;
  std::optional<size_t> place_;
};

}  // namespace leat::worker
