// SPDX-License-Identifier: Apache-2.0
//
// Decoding, and operators on the place of pixels.
#include <algorithm>
#include <utility>

#include "core/image_size.h"
#include "core/operator_table.h"
#include "core/shape_inference.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

using Inputs = std::span<const ValueType>;

// The argument `size` as two numbers, completed in place.
absl::StatusOr<ImageSize> CompleteSize(Node* node) {
  auto& size = std::get<std::vector<int64_t>>(node->args.at("size"));
  if (size.size() == 1) size.push_back(size[0]);
  if (size.size() != 2)
    return InvalidArgument(
        "argument \"size\" has {} numbers, want 1 or 2 (height, width)",
        size.size());
  return ImageSize{size[0], size[1]};
}

TypesOr InferDecode(Node* node, Inputs inputs) {
  if (inputs[0].kind != ValueType::Kind::kEncoded)
    return InvalidArgument("input is {}, want an encoded image",
                           TypeText(inputs[0]));
  const bool gray = ArgOf<std::string>(*node, "output") == "gray";
  return OneTensor(DType::kUint8, {-1, -1, gray ? 1 : 3});
}

TypesOr InferRandomResizedCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  RETURN_IF_ERROR(WantInterval(*node, "area"));
  RETURN_IF_ERROR(WantInterval(*node, "aspect"));
  ASSIGN_OR_RETURN(const ImageSize size, CompleteSize(node));
  return OneTensor(DType::kUint8,
                   {size.height, size.width, inputs[0].shape[2]});
}

TypesOr InferResize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  ASSIGN_OR_RETURN(const ImageSize want, CompleteSize(node));
  const Shape& in = inputs[0].shape;
  const auto mode = *ParseResizeMode(ArgOf<std::string>(*node, "mode"));
  const bool known = in[0] > 0 && in[1] > 0;
  if (mode != ResizeMode::kStretch && !known)
    return OneTensor(DType::kUint8, {-1, -1, in[2]});
  const ImageSize size =
      ResizedSize(known ? ImageSize{in[0], in[1]} : want, want, mode);
  return OneTensor(DType::kUint8, {size.height, size.width, in[2]});
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

TypesOr InferFlip(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

}  // namespace

void AddImageOperators(OperatorList* list) {
  list->push_back(
      {Operator(
           "decode", 1, 1,
           {Choice("output", Text("rgb"), {"rgb", "gray", "bgr", "ycbcr"},
                   "colours of the result; ycbcr: BT.601, Y in 16 to 235"),
            Arg("orient", ArgType::kBool, Value(true),
                "turn the image as its EXIF orientation says")},
           "encoded image -> uint8 (height, width, 3 or 1); JPEG, PNG, WebP, "
           "BMP, TIFF, JPEG 2000; 16 bits are scaled to 8, alpha is dropped"),
       InferDecode});
  list->push_back(
      {Random(Operator(
           "random_resized_crop", 1, 1,
           Join({SizeArg(
                     "height and width of the result, or one number for both"),
                 Ranged(Arg("area", ArgType::kFloats,
                            Value(std::vector<double>{0.08, 1.0}),
                            "least and largest part of the image's area"),
                        1e-6, 1),
                 Ranged(Arg("aspect", ArgType::kFloats,
                            Value(std::vector<double>{3.0 / 4.0, 4.0 / 3.0}),
                            "least and largest width / height; drawn "
                            "log-uniformly"),
                        1e-3, 1e3),
                 Ranged(Arg("attempts", ArgType::kInt, Value(int64_t{10}),
                            "windows drawn before the central one is taken"),
                        1, 100)},
                ResamplingArgs()),
           "a random window, resized")),
       InferRandomResizedCrop});
  list->push_back(
      {Operator(
           "resize", 1, 1,
           Join({SizeArg("height and width, or one number for both"),
                 Choice(
                     "mode", Text("stretch"),
                     {"stretch", "not_smaller", "not_larger"},
                     "stretch: exactly size; otherwise the aspect is kept and "
                     "size is the least, or the largest")},
                ResamplingArgs()),
           "the whole image, resized"),
       InferResize});
  const auto position = [](std::string name, std::string doc) {
    return PerSample(Ranged(
        Arg(std::move(name), ArgType::kFloat, Value(0.5), std::move(doc)), 0,
        1));
  };
  list->push_back(
      {Operator(
           "crop", 1, 1,
           {SizeArg("height and width, or one number for both"),
            position("pos_y", "0: at the top, 1: at the bottom"),
            position("pos_x", "0: at the left, 1: at the right")},
           "a window of the image; an image smaller than it is a bad sample"),
       InferCrop});
  list->push_back(
      {Operator("flip", 1, 1,
                {PerSample(Arg("horizontal", ArgType::kBool, Value(true),
                               "mirror left and right")),
                 PerSample(Arg("vertical", ArgType::kBool, Value(false),
                               "mirror top and bottom"))},
                "the image mirrored"),
       InferFlip});
}

}  // namespace leat
