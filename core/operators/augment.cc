// SPDX-License-Identifier: Apache-2.0
//
// Automatic augmentation. Tables and draws: core/operators/augmentation.h;
// pixels: worker/image/formulas/augment.h. Names, defaults and meanings are
// those of nvidia.dali.auto_aug; since the image's size is known here,
// max_translate_rel needs no `shape`.
#include <algorithm>
#include <set>
#include <utility>

#include "core/operators/augmentation.h"
#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr double kMostOperations = 64;
constexpr double kMostBins = 100'000;

absl::Status WantColoursOrGray(const ValueType& type) {
  RETURN_IF_ERROR(WantUint8Image(type));
  RETURN_IF_ERROR(WantSides(type));
  if (type.shape[2] == 1 || type.shape[2] == 3) return absl::OkStatus();
  return InvalidArgument("input is {}, want 1 channel, or 3: red, green, blue",
                         TypeText(type));
}

absl::Status WantMagnitude(const Node& node) {
  const auto* magnitude = std::get_if<double>(&node.args.at("magnitude"));
  const AugmentationInfo& info =
      InfoOf(*ParseAugmentation(ArgOf<std::string>(node, "operation")));
  if (magnitude == nullptr || info.least == info.most ||
      (*magnitude >= info.least && *magnitude <= info.most))
    return absl::OkStatus();
  return InvalidArgument(
      "argument \"magnitude\" is {}, want {} to {} for operation \"{}\"",
      *magnitude, info.least, info.most, info.name);
}

TypesOr InferAugment(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantColoursOrGray(inputs[0]));
  RETURN_IF_ERROR(WantMagnitude(*node));
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferEqualize(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

// Completes one number to two. Only one of the two arguments may be given.
absl::Status CompleteTranslations(Node* node) {
  int given = 0;
  for (const char* name : {"max_translate_abs", "max_translate_rel"}) {
    RETURN_IF_ERROR(CompletePair<double>(node, name));
    given += !ArgOf<Floats>(*node, name).empty();
  }
  if (given < 2) return absl::OkStatus();
  return InvalidArgument(
      "arguments \"max_translate_abs\" and \"max_translate_rel\" are both "
      "given, want one");
}

absl::Status WantSomeLeft(const Node& node) {
  const auto& excluded = ArgOf<Texts>(node, "excluded");
  const std::set<std::string> names(excluded.begin(), excluded.end());
  if (names.size() < RandAugmentSuite(true, {}).size()) return absl::OkStatus();
  return InvalidArgument("argument \"excluded\" is all {} operations: [{}]",
                         names.size(), fmt::join(names, ", "));
}

TypesOr InferSuite(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantColoursOrGray(inputs[0]));
  RETURN_IF_ERROR(CompleteTranslations(node));
  RETURN_IF_ERROR(WantSomeLeft(*node));
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferRandAugment(Node* node, Inputs inputs) {
  const auto m = ArgOf<int64_t>(*node, "m");
  const auto bins = ArgOf<int64_t>(*node, "num_magnitude_bins");
  if (m >= bins)
    return InvalidArgument(
        "argument \"m\" is {}, want 0 to {}: one of the \"num_magnitude_bins\"",
        m, bins - 1);
  return InferSuite(node, inputs);
}

TypesOr InferAutoAugment(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantColoursOrGray(inputs[0]));
  RETURN_IF_ERROR(CompleteTranslations(node));
  const auto& policy = ArgOf<std::string>(*node, "policy");
  for (const char* name : {"max_translate_abs", "max_translate_rel"})
    if (!ArgOf<Floats>(*node, name).empty() && !HasTranslations(policy))
      return InvalidArgument(
          "argument \"{}\" is given, but the policy \"{}\" has no translations",
          name, policy);
  return std::vector<ValueType>{inputs[0]};
}

// --- Signatures -------------------------------------------------------------

std::vector<ArgInfo> Outside() {
  return {
      FloatArg("fill_value", 128.0, 0, 255,
               "outside the image, where it is moved, turned or sheared; "
               "rounded"),
      Choice("border", Text("fill"), {"fill", "edge"},
             "outside the image: fill_value, or the nearest pixel of its edge"),
      Choice("interpolation", Text("linear"), {"linear", "nearest"},
             "between pixels, where the image is moved, turned or sheared"),
      PlacesRuleArg()};
}

std::vector<ArgInfo> Translations(std::string_view otherwise) {
  return {FloatsArg("max_translate_abs", 0, kMaxSide,
                    fmt::format("the greatest translation in pixels; one "
                                "number, or height and width; neither this "
                                "nor max_translate_rel: {}",
                                otherwise)),
          FloatsArg("max_translate_rel", 0, 16,
                    "the same in parts of the image's sides")};
}

ArgInfo Bins() {
  return IntArg("num_magnitude_bins", 31, 1, kMostBins,
                "how many magnitudes an operation has, at equal distances");
}

ArgInfo Excluded() {
  ArgInfo arg = Arg("excluded", ArgType::kStrings, Value(Texts{}),
                    "operations that are never drawn");
  for (const AugmentationRange& range : RandAugmentSuite(true, {}))
    arg.choices.emplace_back(InfoOf(range.operation).name);
  return arg;
}

OperatorInfo Augment() {
  Texts names;
  for (const AugmentationInfo& info : Augmentations())
    names.emplace_back(info.name);
  const ArgInfo magnitude = Scalar(
      "magnitude", 0.0, -1e6, 1e6,
      "rotate: degrees, counter-clockwise; shear_x, shear_y: x + "
      "magnitude * y, y + magnitude * x; translate_x, translate_y: pixels "
      "to the right, down; brightness, color, contrast, sharpness: a "
      "factor, 1 keeps the image; posterize: the bits kept, 0 as 1; "
      "solarize: the least value inverted; solarize_add: what is added "
      "below 128; the others have none");
  return Operator(
      "augment", 1, 1,
      Join({Choice("operation", std::nullopt, std::move(names), "what is done"),
            magnitude},
           Outside()),
      "one operation of the policies of automatic augmentation; "
      "images of 3 channels (RGB) or 1");
}

OperatorInfo RandAugment() {
  return Random(Operator(
      "rand_augment", 1, 1,
      Join(Join({Ranged(Arg("n", ArgType::kInt, std::nullopt,
                            "how many operations, one after the other"),
                        1, kMostOperations),
                 Ranged(Arg("m", ArgType::kInt, std::nullopt,
                            "the bin of all their magnitudes"),
                        0, kMostBins),
                 Bins(),
                 FlagArg(
                     "monotonic_mag", true,
                     "a greater bin is a stronger operation; otherwise "
                     "posterize, solarize and the factors have AutoAugment's "
                     "ranges"),
                 Excluded()},
                Translations("100 pixels")),
           Outside()),
      "RandAugment: n operations drawn of 14, with replacement; images of 3 "
      "channels (RGB) or 1"));
}

OperatorInfo TrivialAugment() {
  return Random(Operator(
      "trivial_augment_wide", 1, 1,
      Join(Join({Bins(), Excluded()}, Translations("32 pixels")), Outside()),
      "TrivialAugment (wide): one operation drawn of 14, at a magnitude drawn; "
      "images of 3 channels (RGB) or 1"));
}

OperatorInfo AutoAugment() {
  Texts policies;
  for (const std::string_view name : AutoAugmentPolicies())
    policies.emplace_back(name);
  return Random(Operator(
      "auto_augment", 1, 1,
      Join(Join({Choice("policy", Text("image_net"), std::move(policies),
                        "the dataset that the policy was found for")},
                Translations("250 pixels")),
           Outside()),
      "AutoAugment: one of the policy's 25 sequences of at most two "
      "operations, each done with a probability of its own; images of 3 "
      "channels (RGB) or 1"));
}

}  // namespace

void AddAugmentOperators(OperatorList* list) {
  list->push_back({Augment(), InferAugment});
  list->push_back({AutoAugment(), InferAutoAugment});
  list->push_back({RandAugment(), InferRandAugment});
  list->push_back({TrivialAugment(), InferSuite});
  list->push_back({Operator("equalize", 1, 1, {},
                            "each channel's values spread over the whole range "
                            "by their distribution, as OpenCV does it"),
                   InferEqualize});
}

}  // namespace leat
