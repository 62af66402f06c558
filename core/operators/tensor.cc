// SPDX-License-Identifier: Apache-2.0
//
// Random numbers, and operators on the values of tensors.
#include <algorithm>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/image_size.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

TypesOr InferCoinFlip(Node*, Inputs) { return OneTensor(DType::kBool, {}); }

TypesOr InferUniform(Node* node, Inputs) {
  const double low = ArgOf<double>(*node, "low");
  const double high = ArgOf<double>(*node, "high");
  // The result is a float32: both bounds must stay distinct and finite as such.
  if (static_cast<float>(low) < static_cast<float>(high) &&
      std::max(-low, high) < 3e38)
    return OneTensor(DType::kFloat32, {});
  return InvalidArgument(
      "arguments \"low\", \"high\" are {}, {}, want low < high as float32", low,
      high);
}

TypesOr InferNormalize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  for (const char* name : {"mean", "std"})
    RETURN_IF_ERROR(WantPerChannel(*node, name, inputs[0].shape[2]));
  return OneTensor(DTypeOf(*node), inputs[0].shape);
}

TypesOr InferCast(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  return OneTensor(DTypeOf(*node), inputs[0].shape);
}

TypesOr InferTranspose(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  const auto& perm = ArgOf<std::vector<int64_t>>(*node, "perm");
  const Shape& in = inputs[0].shape;
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool good = sorted.size() == in.size();
  for (size_t i = 0; good && i < sorted.size(); ++i)
    good = sorted[i] == static_cast<int64_t>(i);
  if (!good)
    return InvalidArgument(
        "argument \"perm\" is [{}], want a permutation of the {} axes of {}",
        fmt::join(perm, ", "), in.size(), TypeText(inputs[0]));
  Shape shape;
  for (const int64_t axis : perm) shape.push_back(in[axis]);
  return OneTensor(inputs[0].dtype, std::move(shape));
}

TypesOr InferLength(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  const auto rank = static_cast<int64_t>(inputs[0].shape.size());
  const int64_t axis = ArgOf<int64_t>(*node, "axis");
  if (axis >= rank)
    return InvalidArgument(
        "argument \"axis\" is {}, want one of the {} axes of {}", axis, rank,
        TypeText(inputs[0]));
  return OneTensor(DType::kInt32, {});
}

}  // namespace

void AddTensorOperators(OperatorList* list) {
  list->push_back(
      {Random(Operator("coin_flip", 0, 1,
                       {FloatArg("probability", 0.5, 0, 1, "of true")},
                       "a random bool a sample")),
       InferCoinFlip});
  list->push_back(
      {Random(Operator(
           "uniform", 0, 1,
           {Arg("low", ArgType::kFloat, Value(0.0), "least value"),
            Arg("high", ArgType::kFloat, Value(1.0), "upper bound, excluded")},
           "a random float32 a sample")),
       InferUniform});
  list->push_back(
      {Operator(
           "normalize", 1, 1,
           {Arg("mean", ArgType::kFloats, std::nullopt,
                "one number, or one a channel"),
            Ranged(Arg("std", ArgType::kFloats, std::nullopt,
                       "one number, or one a channel"),
                   1e-30, 1e30),
            Arg("scale", ArgType::kFloat, Value(1.0), "factor of the result"),
            Arg("shift", ArgType::kFloat, Value(0.0), "added to the result"),
            Choice("dtype", Text("float32"), {"float32", "float16"},
                   "type of the result")},
           "(x - mean) * (scale / std) + shift"),
       InferNormalize});
  list->push_back(
      {TakesCarried(Operator(
           "cast", 1, 1,
           {Choice("dtype", std::nullopt,
                   {"bool", "uint8", "int32", "int64", "float16", "float32",
                    "int8", "int16", "uint16", "uint32", "bfloat16"},
                   "type of the result; to integers: halves to even, "
                   "saturated, 0 for a NaN; to float16 and bfloat16: by way of "
                   "float32, each time the nearest, halves to even, beyond the "
                   "greatest infinite; operators do not compute with int8, "
                   "int16, uint16, uint32 and bfloat16")},
           "the same values in another type")),
       InferCast});
  list->push_back(
      {Operator(
           "transpose", 1, 1,
           {Ranged(Arg("perm", ArgType::kInts, std::nullopt,
                       "axis i of the result is axis perm[i] of the input"),
                   0, 7)},
           "the axes in another order"),
       InferTranspose});
  list->push_back(
      {TakesCarried(Operator(
           "length", 1, 1, {IntArg("axis", 0, 0, 7, "which is measured")},
           "the number of elements along an axis (int32): what a "
           "value whose size differs from sample to sample had before "
           "it was padded")),
       InferLength});
}

}  // namespace leat
