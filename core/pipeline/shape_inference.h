// SPDX-License-Identifier: Apache-2.0
//
// Shape inference computes the types of an operator's outputs from those of its
// inputs. Part of Check().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"

namespace leat {

// Returns "an encoded image", "uint8 (?, ?, 3)", "int32 scalar", for messages.
std::string TypeText(const ValueType& type);

// Returns the types of the outputs of `node`. Checks constraints between
// arguments, and completes `node`: a single number in `size` becomes two.
// kInvalidArgument: names the argument or the input, without the node; also an
// input of a type that is only carried, if the operator does not take those.
// REQUIRES: the arguments are complete and have their types; inputs.size() is
// the operator's.
absl::StatusOr<std::vector<ValueType>> InferTypes(
    Node* node, std::span<const ValueType> inputs);

}  // namespace leat
