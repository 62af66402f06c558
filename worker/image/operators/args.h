// SPDX-License-Identifier: Apache-2.0
//
// Arguments of kernels: constants of the node, and arguments that may be given
// per sample.
#pragma once

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {

// REQUIRES: the argument has this type and is no node's output.
template <class T>
const T& ConstantArg(const CheckedGraph& graph, uint32_t node,
                     const char* name) {
  return std::get<T>(graph.graph.nodes[node].args.at(name));
}

inline const ValueType& InputType(const CheckedGraph& graph, uint32_t node,
                                  size_t input) {
  const NodeRef& ref = graph.graph.nodes[node].inputs[input];
  return graph.types[ref.node][ref.output];
}

// A number that is a constant, or the value of another node.
class FloatArg {
 public:
  // An argument that the operator does not have is `otherwise`.
  static FloatArg Of(const CheckedGraph& graph, uint32_t node, const char* name,
                     double otherwise = 0) {
    FloatArg arg;
    arg.constant_ = otherwise;
    const Node& op = graph.graph.nodes[node];
    size_t place = 0;  // among the arguments that may be per sample
    for (const ArgInfo& info : FindOperator(op.op)->args) {
      if (info.name == name) {
        arg.info_ = &info;
        const Value& value = op.args.at(info.name);
        if (std::holds_alternative<NodeRef>(value))
          arg.place_ = place;
        else
          arg.constant_ = std::get<double>(value);
      }
      place += info.per_sample;
    }
    return arg;
  }

  std::optional<double> constant() const {
    return place_ ? std::nullopt : std::optional(constant_);
  }

  // kInvalidArgument: a sample's value is outside the argument's range.
  absl::StatusOr<double> In(const OperatorCall& call) const {
    if (!place_) return constant_;
    float value;
    memcpy(&value, call.args[*place_]->data, sizeof value);
    const bool bounded = info_->min <= info_->max;
    if (std::isfinite(value) &&
        (!bounded || (value >= info_->min && value <= info_->max)))
      return value;
    if (!bounded)
      return InvalidArgument("argument \"{}\" is {}, want a finite number",
                             info_->name, value);
    return InvalidArgument("argument \"{}\" is {}, want a number {} to {}",
                           info_->name, value, info_->min, info_->max);
  }

 private:
  double constant_ = 0;
  std::optional<size_t> place_;
  const ArgInfo* info_ = nullptr;
};

}  // namespace leat::worker
