// SPDX-License-Identifier: Apache-2.0
//
// Tables, one-hot vectors and statistics. Names, defaults and meanings are
// those of DALI's operators lookup_table, one_hot and normalize (here
// standardize, since normalize uses given mean and std).
#include <algorithm>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/value_types.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

const std::vector<std::string>& AllTypes() {
  static const auto& types = *new std::vector<std::string>{
      "bool", "uint8", "int32", "int64", "float16", "float32"};
  return types;
}

absl::Status WantIntegers(const ValueType& type) {
  RETURN_IF_ERROR(WantTensor(type));
  if (!IsFloat(type.dtype)) return absl::OkStatus();
  return InvalidArgument("input is {}, want integers", TypeText(type));
}

TypesOr InferLookup(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantIntegers(inputs[0]));
  const size_t keys = ArgOf<Ints>(*node, "keys").size();
  const size_t values = ArgOf<Floats>(*node, "values").size();
  if (keys != values)
    return InvalidArgument(
        "arguments \"keys\", \"values\" have {} and {} numbers, want as many "
        "of both",
        keys, values);
  return OneTensor(DTypeOf(*node), inputs[0].shape);
}

// A sample of one element counts as a scalar, as in DALI.
TypesOr InferOneHot(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantIntegers(inputs[0]));
  const Shape& in = inputs[0].shape;
  const bool scalar =
      std::all_of(in.begin(), in.end(), [](int64_t size) { return size == 1; });
  Shape shape = scalar ? Shape{} : in;
  shape.push_back(ArgOf<int64_t>(*node, "num_classes"));
  if (shape.size() > 8)
    return InvalidArgument("input is {}, want at most 7 axes",
                           TypeText(inputs[0]));
  return OneTensor(DTypeOf(*node), std::move(shape));
}

// Checks `mean` or `stddev`: empty (then it is computed), one number, or one
// for each position of the axes that are kept.
absl::Status CheckGiven(const Node& node, const char* name, const Shape& kept) {
  const size_t count = ArgOf<Floats>(node, name).size();
  if (count <= 1) return absl::OkStatus();
  double want = 1;
  for (const int64_t size : kept) want *= static_cast<double>(size);
  if (static_cast<double>(count) == want &&
      std::all_of(kept.begin(), kept.end(), [](int64_t s) { return s > 0; }))
    return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" has {} numbers, want none, one, or one for each of ({}),"
      " the axes that are not in \"axes\"",
      name, count, fmt::join(kept, ", "));
}

TypesOr InferStandardize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  auto& axes = std::get<Ints>(node->args.at("axes"));
  const Shape& in = inputs[0].shape;
  const auto rank = static_cast<int64_t>(in.size());
  if (axes.empty())
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  std::sort(axes.begin(), axes.end());
  const bool twice = std::adjacent_find(axes.begin(), axes.end()) != axes.end();
  if (rank == 0 || twice || axes.back() >= rank)
    return InvalidArgument(
        "argument \"axes\" is [{}], want some of the {} axes of {}",
        fmt::join(axes, ", "), rank, TypeText(inputs[0]));
  Shape kept;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!std::binary_search(axes.begin(), axes.end(), axis))
      kept.push_back(in[axis]);
  RETURN_IF_ERROR(CheckGiven(*node, "mean", kept));
  RETURN_IF_ERROR(CheckGiven(*node, "stddev", kept));
  return OneTensor(DTypeOf(*node), in);
}

OperatorInfo Standardize() {
  return Operator(
      "standardize", 1, 1,
      {IntsArg("axes", 0, 7,
               "over which statistics are computed; none: over all"),
       Arg("mean", ArgType::kFloats, Value(Floats{}),
           "none: computed; otherwise one number, or one for each place of the "
           "axes that are kept"),
       FloatsArg("stddev", 1e-30, 1e30, "as mean"),
       IntArg("ddof", 0, 0, 1e9,
              "the variance is the sum of squares / (n - ddof)"),
       FloatArg("epsilon", 0.0, 0, 1e30,
                "added to the variance, given or computed"),
       Arg("scale", ArgType::kFloat, Value(1.0), "factor of the result"),
       Arg("shift", ArgType::kFloat, Value(0.0), "added to the result"),
       Choice("dtype", Text("float32"),
              {"uint8", "int32", "int64", "float16", "float32"},
              "type of the result")},
      "scale * (x - mean) / stddev + shift, with the sample's own statistics; "
      "a deviation of 0 gives shift");
}

}  // namespace

void AddValueOperators(OperatorList* list) {
  list->push_back(
      {Operator(
           "lookup_table", 1, 1,
           {Ranged(Arg("keys", ArgType::kInts, std::nullopt,
                       "values of the input; of equal ones the last "
                       "counts"),
                   0, 65'535),
            Arg("values", ArgType::kFloats, std::nullopt, "what they become"),
            Arg("default_value", ArgType::kFloat, Value(0.0),
                "of what is not among the keys"),
            Choice("dtype", Text("float32"), AllTypes(),
                   "type of the result; to integers: halves to even, "
                   "saturated")},
           "values[i] where x is keys[i]"),
       InferLookup});
  list->push_back(
      {Operator(
           "one_hot", 1, 1,
           {Ranged(Arg("num_classes", ArgType::kInt, std::nullopt,
                       "size of the result's last axis; a class that is "
                       "not below it is a bad sample"),
                   1, 1e7),
            Arg("on_value", ArgType::kFloat, Value(1.0),
                "at the class's place"),
            Arg("off_value", ArgType::kFloat, Value(0.0), "elsewhere"),
            Choice("dtype", Text("float32"), AllTypes(), "type of the result")},
           "classes as vectors; a sample of one element is a scalar"),
       InferOneHot});
  list->push_back({Standardize(), InferStandardize});
}

}  // namespace leat
