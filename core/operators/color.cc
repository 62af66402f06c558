// SPDX-License-Identifier: Apache-2.0
//
// Operators on colours. Formulas: worker/image/formulas/color.h; names,
// defaults and meanings are those of DALI's operators of the same names.
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/value_types.h"

namespace leat {
namespace {

ArgInfo ResultType() {
  return Choice(
      "dtype", Text("input"),
      {"input", "uint8", "int32", "int64", "float16", "float32"},
      "type of the result: the input's, or another; to integers: halves to "
      "even, saturated");
}

DType ResultTypeOf(const Node& node, const ValueType& input) {
  return ParseDType(ArgOf<std::string>(node, "dtype")).value_or(input.dtype);
}

absl::Status WantColours(const ValueType& type) {
  RETURN_IF_ERROR(WantImage(type));
  RETURN_IF_ERROR(WantNumbers(type));
  if (type.shape[2] == 3) return absl::OkStatus();
  return InvalidArgument("input is {}, want 3 channels: red, green, blue",
                         TypeText(type));
}

// Completes an empty contrast_center to the middle of the input type's range.
absl::Status CompleteCenter(Node* node, DType dtype) {
  const auto it = node->args.find("contrast_center");
  if (it == node->args.end()) return absl::OkStatus();
  auto& center = std::get<std::vector<double>>(it->second);
  if (center.empty()) center.push_back(MiddleOf(dtype));
  if (center.size() == 1) return absl::OkStatus();
  return InvalidArgument(
      "argument \"contrast_center\" has {} numbers, want one", center.size());
}

TypesOr InferLinear(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  RETURN_IF_ERROR(WantNumbers(inputs[0]));
  RETURN_IF_ERROR(CompleteCenter(node, inputs[0].dtype));
  return OneTensor(ResultTypeOf(*node, inputs[0]), inputs[0].shape);
}

TypesOr InferTwist(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantColours(inputs[0]));
  return OneTensor(ResultTypeOf(*node, inputs[0]), inputs[0].shape);
}

TypesOr InferConversion(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  const auto& from = ArgOf<std::string>(*node, "image_type");
  const int64_t channels = from == "gray" ? 1 : 3;
  Shape shape = inputs[0].shape;
  if (shape[2] != channels)
    return InvalidArgument("input is {}, want {} for image_type \"{}\"",
                           TypeText(inputs[0]),
                           channels == 1 ? "1 channel" : "3 channels", from);
  shape[2] = ArgOf<std::string>(*node, "output_type") == "gray" ? 1 : 3;
  return OneTensor(DType::kUint8, std::move(shape));
}

ArgInfo Number(std::string name, double default_value, std::string doc) {
  return Scalar(std::move(name), default_value, -1e6, 1e6, std::move(doc));
}

ArgInfo Brightness() {
  return Number("brightness", 1, "factor; 1 keeps the image");
}
ArgInfo BrightnessShift() {
  return Number("brightness_shift", 0,
                "added; 1 is the largest value of the result's type, 1 for "
                "floats");
}
ArgInfo Contrast() {
  return Number("contrast", 1,
                "factor of the distance from the centre; 0 gives one gray");
}
ArgInfo ContrastCenter() {
  return Arg("contrast_center", ArgType::kFloats, Value(std::vector<double>{}),
             "the value that contrast keeps; none: the middle of the input's "
             "type, 128 for uint8, 0.5 for floats");
}
ArgInfo Hue() {
  return Number("hue", 0, "angle by which colours are turned, in degrees");
}
ArgInfo Saturation() {
  return Number("saturation", 1, "factor of the colours; 0 gives grays");
}

void AddLinear(OperatorList* list) {
  list->push_back({Operator("brightness", 1, 1,
                            {Brightness(), BrightnessShift(), ResultType()},
                            "x * brightness + brightness_shift * range"),
                   InferLinear});
  list->push_back(
      {Operator("contrast", 1, 1, {Contrast(), ContrastCenter(), ResultType()},
                "contrast_center + contrast * (x - contrast_center)"),
       InferLinear});
  list->push_back(
      {Operator("brightness_contrast", 1, 1,
                {Brightness(), BrightnessShift(), Contrast(), ContrastCenter(),
                 ResultType()},
                "brightness_shift * range + brightness * (contrast_center + "
                "contrast * (x - contrast_center))"),
       InferLinear});
}

}  // namespace

void AddColorOperators(OperatorList* list) {
  AddLinear(list);
  list->push_back(
      {Operator("hue", 1, 1, {Hue(), ResultType()},
                "colours turned around the gray axis of YIQ; RGB images"),
       InferTwist});
  list->push_back(
      {Operator("saturation", 1, 1, {Saturation(), ResultType()},
                "distances from gray, in YIQ, times a factor; RGB images"),
       InferTwist});
  list->push_back(
      {Operator("hsv", 1, 1,
                {Hue(), Saturation(), Number("value", 1, "factor of it all"),
                 ResultType()},
                "hue, saturation and value, as one linear map in YIQ; RGB "
                "images"),
       InferTwist});
  list->push_back(
      {Operator("color_twist", 1, 1,
                {Brightness(), Contrast(), Hue(), Saturation(), ResultType()},
                "hue and saturation in YIQ, then contrast around the middle, "
                "then brightness: one linear map; RGB images"),
       InferTwist});
  const std::vector<std::string> spaces = {"rgb", "bgr", "gray", "ycbcr"};
  list->push_back(
      {Operator(
           "color_space_conversion", 1, 1,
           {Choice("image_type", std::nullopt, spaces, "colours of the input"),
            Choice("output_type", std::nullopt, spaces,
                   "colours of the result; ycbcr is that of ITU-R BT.601, "
                   "16 to 235 and 16 to 240")},
           "the same colours in another space"),
       InferConversion});
}

}  // namespace leat
