// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/shape_inference.h"

#include "core/pipeline/operator_table.h"
#include "core/status.h"

namespace leat {

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
  for (const OperatorEntry& entry : OperatorTable())
    if (entry.info.name == node->op) return entry.infer(node, inputs);
  return Internal("operator {} has no rule for its types", node->op);
}

}  // namespace leat
