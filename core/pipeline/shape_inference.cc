// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/shape_inference.h"

#include "core/pipeline/operator_table.h"
#include "core/status.h"

namespace leat {

namespace {

// Returns the narrowest type that operators compute with and that holds all
// values of `dtype`.
std::string_view ComputableAs(DType dtype) {
  if (dtype == DType::kBfloat16) return "float32";
  return dtype == DType::kUint32 ? "int64" : "int32";
}

}  // namespace

std::string TypeText(const ValueType& type) {
  if (type.kind == ValueType::Kind::kEncoded) return "an encoded image";
  std::string text(Name(type.dtype));
  if (type.shape.empty()) return text + " scalar";
  text += " (";
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (i) text += ", ";
    text += type.shape[i] < 0 ? "?" : fmt::format("{}", type.shape[i]);
  }
  return text + (type.shape.size() == 1 ? ",)" : ")");
}

TypesOr InferTypes(Node* node, std::span<const ValueType> inputs) {
  for (const OperatorEntry& entry : OperatorTable()) {
    if (entry.info.name != node->op) continue;
    for (const ValueType& input : inputs)
      if (IsCarried(input.dtype) && !entry.info.takes_carried)
        return InvalidArgument(
            "input is {}, and operators do not compute with {}: cast it, for "
            "example to {}",
            TypeText(input), Name(input.dtype), ComputableAs(input.dtype));
    return entry.infer(node, inputs);
  }
  return Internal("operator {} has no rule for its types", node->op);
}

}  // namespace leat
