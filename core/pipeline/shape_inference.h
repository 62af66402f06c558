// SPDX-License-Identifier: Apache-2.0
//
// Shape inference: what an operator gives for what it gets. Part of Check().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"

namespace leat {

// "encoded image", "uint8 (?, ?, 3)", "int32 scalar": for messages.
std::string TypeText(const ValueType& type);

// The outputs' types of `node`. Checks what a single argument's range cannot
// say, and completes `node`: a single number in `size` becomes two.
// kInvalidArgument: names the argument or the input, without the node.
// REQUIRES: the arguments are complete and of their types; inputs.size() is
// the operator's.
absl::StatusOr<std::vector<ValueType>> InferTypes(
    Node* node, std::span<const ValueType> inputs);

}  // namespace leat
