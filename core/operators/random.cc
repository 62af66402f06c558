// SPDX-License-Identifier: Apache-2.0
//
// Random numbers and noise. Draws: worker/image/formulas/draws.h. Names,
// defaults and meanings are those of DALI's random.normal, random.choice,
// noise.gaussian, noise.salt_and_pepper and noise.shot.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"

namespace leat {
namespace {

TypesOr InferNormal(Node*, Inputs) { return OneTensor(DType::kFloat32, {}); }

TypesOr InferChoice(Node* node, Inputs) {
  const size_t values = ArgOf<Floats>(*node, "values").size();
  auto& chances = std::get<Floats>(node->args.at("probabilities"));
  if (chances.empty())
    chances.assign(values, 1.0 / static_cast<double>(values));
  const double sum = std::accumulate(chances.begin(), chances.end(), 0.0);
  if (chances.size() != values || !(sum > 0.999 && sum < 1.001))
    return InvalidArgument(
        "argument \"probabilities\" has {} numbers with the sum {}, want {}, "
        "one a value, with the sum 1",
        chances.size(), sum, values);
  return OneTensor(DTypeOf(*node), {});
}

TypesOr InferNoise(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantNumbers(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferSaltAndPepper(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantAtMostOne(*node, "salt_val"));
  RETURN_IF_ERROR(WantAtMostOne(*node, "pepper_val"));
  return InferNoise(node, inputs);
}

ArgInfo Mean() { return Scalar("mean", 0, -1e30, 1e30, "of the distribution"); }
ArgInfo Deviation() {
  return Scalar("stddev", 1, 0, 1e30, "of the distribution");
}

}  // namespace

void AddRandomOperators(OperatorList* list) {
  list->push_back({Random(Operator("normal", 0, 1, {Mean(), Deviation()},
                                   "a random float32 a sample, normally "
                                   "distributed")),
                   InferNormal});
  list->push_back(
      {Random(Operator(
           "choice", 0, 1,
           {Arg("values", ArgType::kFloats, std::nullopt,
                "one of these values is drawn"),
            FloatsArg("probabilities", 0, 1, "one a value; none: all alike"),
            Choice("dtype", Text("float32"),
                   {"bool", "uint8", "int32", "int64", "float16", "float32"},
                   "type of the result")},
           "one of the values a sample, at random")),
       InferChoice});
  list->push_back(
      {Random(Operator("noise_gaussian", 1, 1, {Mean(), Deviation()},
                       "normally distributed noise added to every value")),
       InferNoise});
  list->push_back(
      {Random(Operator(
           "noise_salt_and_pepper", 1, 1,
           {Scalar("prob", 0.05, 0, 1, "that a value is replaced"),
            Scalar("salt_vs_pepper", 0.5, 0, 1,
                   "that it is replaced by salt rather than pepper"),
            Arg("salt_val", ArgType::kFloats, Value(Floats{}),
                "none: the type's largest value, 1 for floats"),
            Arg("pepper_val", ArgType::kFloats, Value(Floats{}),
                "none: the type's least value, -1 for floats"),
            FlagArg(
                "per_channel", false,
                "draw for each value rather than for each pixel (all values of "
                "the last axis)")},
           "values replaced by the largest or the least, at random")),
       InferSaltAndPepper});
  list->push_back(
      {Random(
           Operator("noise_shot", 1, 1,
                    {Scalar("factor", 20, 0, 1e30,
                            "by which one event raises a value; 0: no noise")},
                    "Poisson(max(0, x) / factor) * factor")),
       InferNoise});
}

}  // namespace leat
