// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, comparison and choice, element by element, with broadcasting.
// Formulas: worker/image/formulas/arithmetic.h. Types are those of DALI's
// arithmetic operators: two values give PromotedType; an integer constant is
// int32, any other float32.
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/broadcast.h"
#include "core/tensor/value_types.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr size_t kMaxConstantAxes = 8;

absl::StatusOr<Shape> JoinedShape(Inputs inputs) {
  Shape shape;
  for (const ValueType& input : inputs) {
    RETURN_IF_ERROR(WantTensor(input));
    if (!Broadcast(input.shape, &shape))
      return InvalidArgument(
          "inputs are {} and {}, want the same shape or sizes of 1",
          TypeText(inputs[0]), TypeText(input));
  }
  return shape;
}

DType Joined(Inputs inputs) {
  DType dtype = inputs[0].dtype;
  for (const ValueType& input : inputs.subspan(1))
    dtype = PromotedType(dtype, input.dtype);
  return dtype;
}

absl::Status WantNotBool(Inputs inputs) {
  if (Joined(inputs) != DType::kBool) return absl::OkStatus();
  return InvalidArgument("{} bool, want numbers: cast one",
                         inputs.size() == 1 ? "input is" : "inputs are");
}

absl::Status WantNoFloat(Inputs inputs) {
  for (const ValueType& input : inputs)
    if (IsFloat(input.dtype))
      return InvalidArgument("input is {}, want integers or bools",
                             TypeText(input));
  return absl::OkStatus();
}

TypesOr InferNumbers(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  RETURN_IF_ERROR(WantNotBool(inputs));
  return OneTensor(Joined(inputs), std::move(shape));
}

// The product of two bools is a bool.
TypesOr InferProduct(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  return OneTensor(Joined(inputs), std::move(shape));
}

TypesOr InferQuotient(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  RETURN_IF_ERROR(WantNotBool(inputs));
  const DType joined = Joined(inputs);
  return OneTensor(IsFloat(joined) ? joined : DType::kFloat32,
                   std::move(shape));
}

TypesOr InferWholeQuotient(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  RETURN_IF_ERROR(WantNotBool(inputs));
  RETURN_IF_ERROR(WantNoFloat(inputs));
  return OneTensor(Joined(inputs), std::move(shape));
}

TypesOr InferComparison(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  return OneTensor(DType::kBool, std::move(shape));
}

TypesOr InferBits(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  RETURN_IF_ERROR(WantNoFloat(inputs));
  return OneTensor(Joined(inputs), std::move(shape));
}

TypesOr InferWhere(Node*, Inputs inputs) {
  ASSIGN_OR_RETURN(Shape shape, JoinedShape(inputs));
  if (inputs[0].dtype != DType::kBool)
    return InvalidArgument("input 0 is {}, want bool: a comparison",
                           TypeText(inputs[0]));
  return OneTensor(Joined(inputs.subspan(1)), std::move(shape));
}

TypesOr InferConstant(Node* node, Inputs) {
  const size_t count = ArgOf<std::vector<double>>(*node, "values").size();
  auto& shape = std::get<std::vector<int64_t>>(node->args.at("shape"));
  if (shape.empty() && count > 1) shape = {static_cast<int64_t>(count)};
  double elements = 1;
  for (const int64_t size : shape) elements *= static_cast<double>(size);
  if (shape.size() > kMaxConstantAxes || static_cast<double>(count) != elements)
    return InvalidArgument(
        "argument \"shape\" is ({}), want at most {} axes with the {} elements "
        "of \"values\"",
        fmt::join(shape, ", "), kMaxConstantAxes, count);
  return OneTensor(*ParseDType(ArgOf<std::string>(*node, "dtype")), shape);
}

using Infer = TypesOr (*)(Node*, Inputs);

struct Row {
  const char* name;
  int inputs;
  Infer infer;
  const char* doc;
};

constexpr Row kRows[] = {
    {"add", 2, InferNumbers, "a + b; integers wrap around"},
    {"sub", 2, InferNumbers, "a - b; integers wrap around"},
    {"mul", 2, InferProduct, "a * b; integers wrap around"},
    {"div", 2, InferQuotient, "a / b; of integers as float32"},
    {"floordiv", 2, InferWholeQuotient,
     "a / b of integers, rounded down; a divisor of 0 is a bad sample"},
    {"min", 2, InferNumbers, "the lesser of a and b"},
    {"max", 2, InferNumbers, "the greater of a and b"},
    {"lt", 2, InferComparison, "a < b, as bool"},
    {"le", 2, InferComparison, "a <= b, as bool"},
    {"gt", 2, InferComparison, "a > b, as bool"},
    {"ge", 2, InferComparison, "a >= b, as bool"},
    {"eq", 2, InferComparison, "a == b, as bool"},
    {"ne", 2, InferComparison, "a != b, as bool"},
    {"bitwise_and", 2, InferBits, "a & b of integers, or of bools"},
    {"bitwise_or", 2, InferBits, "a | b of integers, or of bools"},
    {"bitwise_xor", 2, InferBits, "a ^ b of integers, or of bools"},
    {"neg", 1, InferNumbers, "-a; integers wrap around"},
    {"abs", 1, InferNumbers, "a without its sign"},
    {"invert", 1, InferBits, "not a, of bools; every bit of integers"},
    {"where", 3, InferWhere,
     "where the first is true a, elsewhere b; if it is one flag a sample, "
     "only the chosen one is computed, and it need not have the other's size"},
};

}  // namespace

void AddArithmeticOperators(OperatorList* list) {
  list->push_back(
      {Operator(
           "constant", 0, 1,
           {Arg("values", ArgType::kFloats, std::nullopt,
                "one number, or those of a row-major tensor"),
            Choice("dtype", Text("float32"),
                   {"bool", "uint8", "int32", "int64", "float16", "float32"},
                   "type of the result; to integers: halves to even, "
                   "saturated"),
            IntsArg("shape", 1, kMaxSide,
                    "sizes of the axes; none: a scalar if there is one "
                    "value, otherwise one axis")},
           "the same value for every sample"),
       InferConstant});
  for (const Row& row : kRows)
    list->push_back(
        {Operator(row.name, row.inputs, 1, {}, row.doc), row.infer});
}

}  // namespace leat
