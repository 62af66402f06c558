// SPDX-License-Identifier: Apache-2.0
//
// Decoding, and operators that move pixels.
#include <algorithm>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/shapes/resize_rule.h"
#include "core/shapes/window_rule.h"
#include "core/status.h"
#include "core/tensor/image_size.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

// Returns the argument `size` as two numbers, and completes it in place.
absl::StatusOr<ImageSize> CompleteSize(Node* node) {
  if (!ArgOf<Ints>(*node, "size").empty()) return OptionalSize(node);
  return InvalidArgument(
      "argument \"size\" has 0 numbers, want 1 or 2 (height, width)");
}

absl::Status WantEncoded(const ValueType& input) {
  if (input.kind == ValueType::Kind::kEncoded) return absl::OkStatus();
  return InvalidArgument("input is {}, want an encoded image", TypeText(input));
}

TypesOr InferDecode(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantEncoded(inputs[0]));
  const bool gray = ArgOf<std::string>(*node, "output") == "gray";
  return OneTensor(DType::kUint8, {-1, -1, gray ? 1 : 3});
}

// Accepts an image of bytes that can be resized. Workers check the sides that
// differ from sample to sample.
absl::Status WantResizable(const ValueType& type) {
  RETURN_IF_ERROR(WantUint8Image(type));
  const auto known = [](int64_t side) { return side < 0 ? 1 : side; };
  return CheckResized({known(type.shape[0]), known(type.shape[1])});
}

TypesOr InferRandomResizedCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantResizable(inputs[0]));
  RETURN_IF_ERROR(WantInterval(*node, "area"));
  RETURN_IF_ERROR(WantInterval(*node, "aspect"));
  ASSIGN_OR_RETURN(const ImageSize size, CompleteSize(node));
  return OneTensor(DType::kUint8,
                   {size.height, size.width, inputs[0].shape[2]});
}

TypesOr InferResize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantResizable(inputs[0]));
  for (const char* name : {"size", "max_size"}) {
    auto& sides = std::get<std::vector<int64_t>>(node->args.at(name));
    if (sides.size() == 1) sides.push_back(sides[0]);
  }
  ASSIGN_OR_RETURN(const ResizeRule rule, ResizeRuleOf(*node));
  const Shape& in = inputs[0].shape;
  if (in[0] <= 0 || in[1] <= 0 || ResizeSideArg(*node) != nullptr) {
    const auto sides = rule.OfAny();
    return OneTensor(DType::kUint8, {sides[0], sides[1], in[2]});
  }
  ASSIGN_OR_RETURN(const Resizing resizing, rule.Of({in[0], in[1]}));
  return OneTensor(DType::kUint8,
                   {resizing.size.height, resizing.size.width, in[2]});
}

TypesOr InferCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  ASSIGN_OR_RETURN(const ImageSize size, CompleteSize(node));
  const Shape& in = inputs[0].shape;
  if ((in[0] >= 0 && in[0] < size.height) || (in[1] >= 0 && in[1] < size.width))
    return InvalidArgument(
        "argument \"size\" is ({}, {}), larger than the image: {}", size.height,
        size.width, TypeText(inputs[0]));
  return OneTensor(inputs[0].dtype, {size.height, size.width, in[2]});
}

TypesOr InferRandomCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  RETURN_IF_ERROR(WantInterval(*node, "area"));
  RETURN_IF_ERROR(WantInterval(*node, "aspect"));
  return OneTensor(inputs[0].dtype, {-1, -1, inputs[0].shape[2]});
}

TypesOr InferWindow(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  const WindowRule rule = WindowRule::Of(*node);
  const auto constant = [&](const char* name) {
    const auto* value = std::get_if<double>(&node->args.at(name));
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  const auto y = constant("y"), x = constant("x");
  const auto height = constant("height"), width = constant("width");
  for (const auto& [name, extent] :
       {std::pair{"height", height}, std::pair{"width", width}})
    if (extent && rule.Fixed(*extent) == 0)
      return InvalidArgument("argument \"{}\" is {}, want at least a pixel",
                             name, *extent);
  const Shape& in = inputs[0].shape;
  if (y && x && height && width && in[0] > 0 && in[1] > 0) {
    ASSIGN_OR_RETURN(const WindowParts parts,
                     rule.At({in[0], in[1]}, *y, *x, *height, *width));
    return OneTensor(inputs[0].dtype,
                     {parts[0].size(), parts[1].size(), in[2]});
  }
  return OneTensor(inputs[0].dtype, {height ? rule.Fixed(*height) : -1,
                                     width ? rule.Fixed(*width) : -1, in[2]});
}

TypesOr InferPeekShape(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantEncoded(inputs[0]));
  return OneTensor(DType::kInt64, {3});
}

TypesOr InferStoredBytes(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantEncoded(inputs[0]));
  return OneTensor(DType::kUint8, {-1});
}

TypesOr InferFlip(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

std::vector<ArgInfo> RandomWindowArgs() {
  return {Ranged(Arg("area", ArgType::kFloats,
                     Value(std::vector<double>{0.08, 1.0}),
                     "least and largest part of the image's area"),
                 1e-6, 1),
          Ranged(Arg("aspect", ArgType::kFloats,
                     Value(std::vector<double>{3.0 / 4.0, 4.0 / 3.0}),
                     "least and largest width / height; drawn log-uniformly"),
                 1e-3, 1e3),
          IntArg("attempts", 10, 1, 100,
                 "windows drawn before the central one is taken")};
}

std::vector<ArgInfo> ResizeArgs() {
  const auto corner = [](std::string name, std::string doc) {
    return AddedLater(FloatsArg(std::move(name), 0, kMaxSide, std::move(doc)));
  };
  const auto filter = [](std::string name, std::string doc) {
    return AddedLater(
        Choice(std::move(name), Text("same"),
               {"same", "linear", "nearest", "cubic", "lanczos3", "gaussian"},
               std::move(doc)));
  };
  return Join(
      Join({IntsArg("size", 0, kMaxSide,
                    "height and width, or one number for both; 0: that side "
                    "follows by the mode"),
            Choice("mode", Text("stretch"),
                   {"stretch", "not_smaller", "not_larger", "default"},
                   "stretch: exactly size, and a side of 0 stays as it is; "
                   "default: exactly size, and a side of 0 keeps the aspect; "
                   "otherwise the aspect is kept and size is the least, or "
                   "the largest")},
           ResamplingArgs()),
      {AddedLater(Scalar(
           "shorter", 0, 0, kMaxSide,
           "length of the shorter side, the aspect is kept; 0: not given")),
       AddedLater(Scalar(
           "longer", 0, 0, kMaxSide,
           "length of the longer side, the aspect is kept; 0: not given")),
       AddedLater(IntsArg(
           "max_size", 1, kMaxSide,
           "greatest height and width, or one number for both; the aspect is "
           "kept where the mode, shorter or longer keeps it; none: no limit")),
       corner("roi_start",
              "upper left corner of the region that is resized: y and x, or "
              "one number for both; none: all of the image. Pixels around the "
              "region count where the filter reaches them"),
       corner("roi_end",
              "its lower right corner; a region beyond the image is a bad "
              "sample"),
       AddedLater(
           FlagArg("roi_relative", false,
                   "roi_start and roi_end are shares of the height and width")),
       AddedLater(
           FlagArg("subpixel_scale", false,
                   "where a side is rounded, the region is widened or "
                   "narrowed, so that both sides keep one scale, as DALI "
                   "does")),
       filter("min_filter",
              "the filter along a side that becomes smaller; same: "
              "interpolation"),
       filter("mag_filter",
              "the filter along a side that does not; same: interpolation"),
       ResamplingRuleArg()});
}

void AddWindows(OperatorList* list) {
  list->push_back({Random(Operator("random_crop", 1, 1, RandomWindowArgs(),
                                   "a random window; its size differs from "
                                   "sample to sample. Behind a decode, no more "
                                   "than it is decoded")),
                   InferRandomCrop});
  const auto number = [](std::string name, std::optional<Value> value,
                         std::string doc) {
    return PerSample(Ranged(
        Arg(std::move(name), ArgType::kFloat, std::move(value), std::move(doc)),
        0, kMaxSide));
  };
  list->push_back(
      {Operator(
           "window", 1, 1,
           {number("height", std::nullopt, "its height in pixels, rounded"),
            number("width", std::nullopt, "its width"),
            number("y", Value(0.0), "its first row, rounded"),
            number("x", Value(0.0), "its first column"),
            FlagArg("normalized_anchor", false,
                    "y and x are shares of the image's height and width"),
            FlagArg("normalized_shape", false,
                    "height and width are shares of the image's")},
           "the window of the image at a place, of a size; one that is not "
           "inside the image is a bad sample. Behind a decode, no more than it "
           "is decoded"),
       InferWindow});
  list->push_back(
      {Operator("peek_shape", 1, 1,
                {FlagArg("orient", true,
                         "of the image as its EXIF orientation turns it")},
                "encoded image -> its height, width and channels (int64), "
                "without decoding it; channels are 1 of a gray image, else 3: "
                "alpha is not counted"),
       InferPeekShape});
  list->push_back({Operator("stored_bytes", 1, 1, {},
                            "encoded image -> the bytes of its file (uint8)"),
                   InferStoredBytes});
}

}  // namespace

void AddImageOperators(OperatorList* list) {
  list->push_back(
      {Operator(
           "decode", 1, 1,
           {Choice("output", Text("rgb"), {"rgb", "gray", "bgr", "ycbcr"},
                   "colours of the result; ycbcr: BT.601, Y in 16 to 235"),
            FlagArg("orient", true,
                    "turn the image as its EXIF orientation says"),
            AddedLater(Choice(
                "reduce", Text("none"), {"none", "auto"},
                "auto: a JPEG is decoded at 1/2, 1/4 or 1/8 where the resize "
                "behind it shrinks by as much or more, which is faster and not "
                "exactly the same picture; between them there may be crop, "
                "random_crop and window. Other formats are decoded whole"))},
           "encoded image -> uint8 (height, width, 3 or 1); JPEG, PNG, WebP, "
           "BMP, TIFF, JPEG 2000; 16 bits are scaled to 8, alpha is dropped"),
       InferDecode});
  list->push_back(
      {Random(Operator("random_resized_crop", 1, 1,
                       Join(
                           {
                               SizeArg("height and width of the result, or one "
                                       "number for both"),
                           },
                           Join(Join(RandomWindowArgs(), ResamplingArgs()),
                                {ResamplingRuleArg()})),
                       "a random window, resized")),
       InferRandomResizedCrop});
  list->push_back({Operator("resize", 1, 1, ResizeArgs(),
                            "the image, or a region of it, resized; exactly "
                            "one of size, shorter and longer"),
                   InferResize});
  list->push_back(
      {Operator(
           "crop", 1, 1,
           {SizeArg("height and width, or one number for both"),
            Scalar("pos_y", 0.5, 0, 1, "0: at the top, 1: at the bottom"),
            Scalar("pos_x", 0.5, 0, 1, "0: at the left, 1: at the right")},
           "a window of the image; an image smaller than it is a bad sample"),
       InferCrop});
  list->push_back(
      {Operator(
           "flip", 1, 1,
           {PerSample(FlagArg("horizontal", true, "mirror left and right")),
            PerSample(FlagArg("vertical", false, "mirror top and bottom"))},
           "the image mirrored"),
       InferFlip});
  AddWindows(list);
}

}  // namespace leat
