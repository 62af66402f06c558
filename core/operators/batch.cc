// SPDX-License-Identifier: Apache-2.0
//
// Operators that relate the rows of a batch: a row's partner, draws that a
// batch shares, and CutMix. Formulas: worker/image/formulas/beta.h,
// worker/image/formulas/cutmix.h.
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"

namespace leat {
namespace {

TypesOr InferPartner(Node*, Inputs inputs) {
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferBeta(Node*, Inputs) { return OneTensor(DType::kFloat32, {}); }

// A size of -1 equals any size.
bool SameType(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind || a.dtype != b.dtype ||
      a.shape.size() != b.shape.size())
    return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] != b.shape[i] && a.shape[i] >= 0 && b.shape[i] >= 0)
      return false;
  return true;
}

TypesOr InferCutMix(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  if (!SameType(inputs[0], inputs[1]))
    return InvalidArgument("inputs are {} and {}, want images of one type",
                           TypeText(inputs[0]), TypeText(inputs[1]));
  ValueType type = inputs[0];
  for (size_t i = 0; i < type.shape.size(); ++i)
    if (type.shape[i] < 0) type.shape[i] = inputs[1].shape[i];
  return std::vector<ValueType>{std::move(type)};
}

TypesOr InferCutMixShare(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  return OneTensor(DType::kFloat32, {});
}

ArgInfo Parameter(const char* name) {
  return Scalar(name, 1.0, 1e-3, 1e6, "of the distribution");
}

std::vector<ArgInfo> BoxArgs() {
  const auto center = [](const char* name, const char* doc) {
    return Scalar(name, 0.5, 0, 1, doc);
  };
  return {PerSample(Ranged(Arg("lam", ArgType::kFloat, std::nullopt,
                               "share of the image that is kept, before the "
                               "box is cut off at the image's edges"),
                           0, 1)),
          center("center_y", "of the box, as a share of the height"),
          center("center_x", "of the box, as a share of the width")};
}

}  // namespace

void AddBatchOperators(OperatorList* list) {
  list->push_back(
      {Operator("partner", 1, 1, {},
                "the value that the input has in another row of the same "
                "step: its partner is the row that is k rows further on, and "
                "after the last row comes the first; k is drawn for each "
                "step, so that each row is the partner of one other row; all "
                "partners in a pipeline are of the same row; in a step of "
                "one row the row is its own partner"),
       InferPartner});
  list->push_back(
      {Random(Operator(
           "beta", 0, 1,
           {Parameter("alpha"), Parameter("beta"),
            Choice("per", Text("sample"), {"sample", "batch"},
                   "what a number is drawn for; batch: all rows of a step "
                   "have the same")},
           "a random float32 of the beta distribution on [0, 1]; alpha = beta "
           "= 1: all numbers alike")),
       InferBeta});
  list->push_back(
      {Operator("cutmix_paste", 2, 1, BoxArgs(),
                "the first image with a box of the second, which has the same "
                "size, in its place; the box's sides are sqrt(1 - lam) of the "
                "image's, as in CutMix and torchvision"),
       InferCutMix});
  list->push_back(
      {Operator("cutmix_share", 1, 1, BoxArgs(),
                "the share of an image that cutmix_paste keeps, given "
                "the same arguments: the label's lambda"),
       InferCutMixShare});
}

}  // namespace leat
