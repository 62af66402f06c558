// SPDX-License-Identifier: Apache-2.0
#include "core/shape_inference.h"

#include <algorithm>

#include "core/image_size.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

using Types = absl::StatusOr<std::vector<ValueType>>;
using Inputs = std::span<const ValueType>;

constexpr int64_t kMaxChannels = 4;

template <class T>
const T& Get(const Node& node, const char* name) {
  return std::get<T>(node.args.at(name));
}

std::vector<ValueType> One(DType dtype, Shape shape) {
  return {{ValueType::Kind::kTensor, dtype, std::move(shape)}};
}

absl::Status WantImage(const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor && type.shape.size() == 3 &&
      type.shape[2] >= 1 && type.shape[2] <= kMaxChannels)
    return absl::OkStatus();
  return InvalidArgument(
      "input is {}, want an image: (height, width, 1 to {} channels){}",
      TypeText(type), kMaxChannels,
      type.kind == ValueType::Kind::kEncoded ? "; put a decode before it" : "");
}

absl::Status WantUint8Image(const ValueType& type) {
  RETURN_IF_ERROR(WantImage(type));
  if (type.dtype == DType::kUint8) return absl::OkStatus();
  return InvalidArgument("input is {}, want uint8: resample before casting",
                         TypeText(type));
}

absl::Status WantTensor(const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor) return absl::OkStatus();
  return InvalidArgument("input is {}, want a tensor; put a decode before it",
                         TypeText(type));
}

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

absl::Status CheckInterval(const Node& node, const char* name) {
  const auto& values = Get<std::vector<double>>(node, name);
  if (values.size() == 2 && values[0] <= values[1]) return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" is [{}], want two numbers: least, largest", name,
      fmt::join(values, ", "));
}

Types InferImageFolder(Node* node, Inputs) {
  if (Get<std::string>(*node, "path").empty())
    return InvalidArgument("argument \"path\" is empty, want a folder");
  return std::vector<ValueType>{{ValueType::Kind::kEncoded, DType::kUint8, {}},
                                {ValueType::Kind::kTensor, DType::kInt32, {}}};
}

Types InferDecode(Node* node, Inputs inputs) {
  if (inputs[0].kind != ValueType::Kind::kEncoded)
    return InvalidArgument("input is {}, want an encoded image",
                           TypeText(inputs[0]));
  const bool gray = Get<std::string>(*node, "output") == "gray";
  return One(DType::kUint8, {-1, -1, gray ? 1 : 3});
}

Types InferRandomResizedCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  RETURN_IF_ERROR(CheckInterval(*node, "area"));
  RETURN_IF_ERROR(CheckInterval(*node, "aspect"));
  ASSIGN_OR_RETURN(const ImageSize size, CompleteSize(node));
  return One(DType::kUint8, {size.height, size.width, inputs[0].shape[2]});
}

Types InferResize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  ASSIGN_OR_RETURN(const ImageSize want, CompleteSize(node));
  const Shape& in = inputs[0].shape;
  const auto mode = *ParseResizeMode(Get<std::string>(*node, "mode"));
  const bool known = in[0] > 0 && in[1] > 0;
  if (mode != ResizeMode::kStretch && !known)
    return One(DType::kUint8, {-1, -1, in[2]});
  const ImageSize size =
      ResizedSize(known ? ImageSize{in[0], in[1]} : want, want, mode);
  return One(DType::kUint8, {size.height, size.width, in[2]});
}

Types InferCrop(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  ASSIGN_OR_RETURN(const ImageSize size, CompleteSize(node));
  const Shape& in = inputs[0].shape;
  if ((in[0] >= 0 && in[0] < size.height) || (in[1] >= 0 && in[1] < size.width))
    return InvalidArgument(
        "argument \"size\" is ({}, {}), larger than the image: {}", size.height,
        size.width, TypeText(inputs[0]));
  return One(inputs[0].dtype, {size.height, size.width, in[2]});
}

Types InferFlip(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

Types InferCoinFlip(Node*, Inputs) { return One(DType::kBool, {}); }

Types InferUniform(Node* node, Inputs) {
  const double low = Get<double>(*node, "low");
  const double high = Get<double>(*node, "high");
  // The result is a float32; both bounds must survive as such.
  if (static_cast<float>(low) < static_cast<float>(high) &&
      std::max(-low, high) < 3e38)
    return One(DType::kFloat32, {});
  return InvalidArgument(
      "arguments \"low\", \"high\" are {}, {}, want low < high as float32", low,
      high);
}

Types InferNormalize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  const int64_t channels = inputs[0].shape[2];
  for (const char* name : {"mean", "std"}) {
    const size_t count = Get<std::vector<double>>(*node, name).size();
    if (count != 1 && count != static_cast<size_t>(channels))
      return InvalidArgument(
          "argument \"{}\" has {} numbers, want 1 or {}, one a channel", name,
          count, channels);
  }
  return One(*ParseDType(Get<std::string>(*node, "dtype")), inputs[0].shape);
}

Types InferCast(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  return One(*ParseDType(Get<std::string>(*node, "dtype")), inputs[0].shape);
}

Types InferTranspose(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  const auto& perm = Get<std::vector<int64_t>>(*node, "perm");
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
  return One(inputs[0].dtype, std::move(shape));
}

struct Rule {
  std::string_view op;
  Types (*infer)(Node*, Inputs);
};

constexpr Rule kRules[] = {
    {"readers.image_folder", InferImageFolder},
    {"decode", InferDecode},
    {"random_resized_crop", InferRandomResizedCrop},
    {"resize", InferResize},
    {"crop", InferCrop},
    {"flip", InferFlip},
    {"coin_flip", InferCoinFlip},
    {"uniform", InferUniform},
    {"normalize", InferNormalize},
    {"cast", InferCast},
    {"transpose", InferTranspose},
};

}  // namespace

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

absl::StatusOr<std::vector<ValueType>> InferTypes(
    Node* node, std::span<const ValueType> inputs) {
  for (const Rule& rule : kRules)
    if (rule.op == node->op) return rule.infer(node, inputs);
  return Internal("operator {} has no rule for its types", node->op);
}

}  // namespace leat
