// SPDX-License-Identifier: Apache-2.0
//
// brightness, contrast, hue, saturation and the like: one linear map per
// sample, made from its arguments and applied to all of its pixels.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/tensor/value_types.h"
#include "worker/image/formulas/color_matrix.h"
#include "worker/image/loops/values.h"
#include "worker/image/operators/args.h"

namespace leat::worker {
namespace {

// Calls use(in, count, out) for blocks of at most kBlock floats that hold whole
// groups of `group`, and converts before and after.
template <class Use>
void InFloatBlocks(const Tensor& in, const Tensor& result, size_t group,
                   Use use) {
  alignas(32) float block[kBlock], computed[kBlock];
  const size_t count = in.elements(), most = kBlock / group * group;
  for (size_t at = 0; at < count; at += most) {
    const size_t some = std::min(most, count - at);
    ConvertValues(in.data + at * SizeOf(in.dtype), in.dtype, some,
                  DType::kFloat32, reinterpret_cast<std::byte*>(block));
    use(block, some, computed);
    ConvertValues(reinterpret_cast<const std::byte*>(computed), DType::kFloat32,
                  some, result.dtype, result.data + at * SizeOf(result.dtype));
  }
}

class BrightnessContrast : public OperatorKernel {
 public:
  BrightnessContrast(const CheckedGraph& graph, uint32_t node)
      : brightness_(FloatArg::Of(graph, node, "brightness", 1)),
        shift_(FloatArg::Of(graph, node, "brightness_shift", 0)),
        contrast_(FloatArg::Of(graph, node, "contrast", 1)),
        dtype_(graph.types[node][0].dtype) {
    const auto& args = graph.graph.nodes[node].args;
    if (const auto it = args.find("contrast_center"); it != args.end())
      center_ = std::get<std::vector<double>>(it->second)[0];
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const LinearForm linear, LinearOf(call));
    const auto [factor, constant] = linear;
    const ValueLoops& loops = BestValueLoops();
    const Tensor& in = *call.inputs[0];
    if (in.dtype == DType::kUint8 && result.dtype == DType::kUint8) {
      loops.linear_bytes(reinterpret_cast<const uint8_t*>(in.data),
                         in.elements(), factor, constant,
                         reinterpret_cast<uint8_t*>(result.data));
      return absl::OkStatus();
    }
    InFloatBlocks(in, result, 1,
                  [&, factor = factor, constant = constant](
                      const float* x, size_t n, float* out) {
                    loops.linear_floats(x, n, factor, constant, out);
                  });
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    return LinearOf(call);
  }

 private:
  absl::StatusOr<LinearForm> LinearOf(const OperatorCall& call) const {
    ASSIGN_OR_RETURN(const double brightness, brightness_.In(call));
    ASSIGN_OR_RETURN(const double shift, shift_.In(call));
    ASSIGN_OR_RETURN(const double contrast, contrast_.In(call));
    return LinearForm{
        static_cast<float>(brightness * contrast),
        static_cast<float>(shift * LargestOf(dtype_) +
                           brightness * (center_ - contrast * center_))};
  }

  FloatArg brightness_, shift_, contrast_;
  double center_ = 0;
  DType dtype_;  // of the result
};

// Applies `matrix` to an image of 3 channels; the result has 3.
void RunMatrix(const ColorMatrix& matrix, const Tensor& in,
               const Tensor& result) {
  const ValueLoops& loops = BestValueLoops();
  if (in.dtype == DType::kUint8 && result.dtype == DType::kUint8) {
    loops.matrix_bytes(matrix, reinterpret_cast<const uint8_t*>(in.data),
                       in.elements() / 3,
                       reinterpret_cast<uint8_t*>(result.data));
    return;
  }
  InFloatBlocks(in, result, 3, [&](const float* x, size_t n, float* out) {
    loops.matrix_floats(matrix, x, n / 3, out);
  });
}

// hue, saturation, hsv and color_twist; an argument that the operator does not
// have changes nothing.
class ColorTwist : public OperatorKernel {
 public:
  ColorTwist(const CheckedGraph& graph, uint32_t node)
      : hue_(FloatArg::Of(graph, node, "hue", 0)),
        saturation_(FloatArg::Of(graph, node, "saturation", 1)),
        value_(FloatArg::Of(graph, node, "value", 1)),
        brightness_(FloatArg::Of(graph, node, "brightness", 1)),
        contrast_(FloatArg::Of(graph, node, "contrast", 1)),
        dtype_(InputType(graph, node, 0).dtype) {}

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const ColorMatrix matrix, MatrixOf(call));
    RunMatrix(matrix, *call.inputs[0], result);
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const ColorMatrix matrix, MatrixOf(call));
    return MatrixForm{matrix};
  }

 private:
  absl::StatusOr<ColorMatrix> MatrixOf(const OperatorCall& call) const {
    ASSIGN_OR_RETURN(const double hue, hue_.In(call));
    ASSIGN_OR_RETURN(const double saturation, saturation_.In(call));
    ASSIGN_OR_RETURN(const double value, value_.In(call));
    ASSIGN_OR_RETURN(const double brightness, brightness_.In(call));
    ASSIGN_OR_RETURN(const double contrast, contrast_.In(call));
    const double middle = MiddleOf(dtype_);
    return TwistMatrix(hue, saturation, brightness * contrast * value,
                       (middle - middle * contrast) * brightness);
  }

  FloatArg hue_, saturation_, value_, brightness_, contrast_;
  DType dtype_;  // of the input
};

// ITU-R BT.601, for bytes.
constexpr ColorMatrix kRgbToYcbcr = {
    {{0.25678824f, 0.50412941f, 0.09790588f},
     {-0.14822290f, -0.29099279f, 0.43921569f},
     {0.43921569f, -0.36778831f, -0.07142737f}},
    {16, 128, 128}};
constexpr ColorMatrix kYcbcrToRgb = {{{1.16438356f, 0, 1.59602679f},
                                      {1.16438356f, -0.39176229f, -0.81296765f},
                                      {1.16438356f, 2.01723214f, 0}},
                                     {-222.921565f, 135.575295f, -276.835851f}};
constexpr ColorMatrix kRgbToGray = {{{.299f, .587f, .114f}}, {}};
constexpr ColorMatrix kYcbcrToGray = {{{1.16438356f}}, {-18.630137f}};
constexpr ColorMatrix kGrayToYcbcr = {{{0.85882353f}}, {16, 128, 128}};
constexpr ColorMatrix kSame = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {}};
constexpr ColorMatrix kGrayToRgb = {{{1}, {1}, {1}}, {}};

class ColorSpaceConversion : public OperatorKernel {
 public:
  ColorSpaceConversion(const CheckedGraph& graph, uint32_t node) {
    const auto& from = ConstantArg<std::string>(graph, node, "image_type");
    const auto& to = ConstantArg<std::string>(graph, node, "output_type");
    matrix_ = Between(from, to);
    gray_input_ = from == "gray";
    gray_result_ = to == "gray";
  }

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    result->dims[2] = gray_result_ ? 1 : 3;
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    if (!gray_input_ && !gray_result_) {
      RunMatrix(matrix_, in, result);
      return absl::OkStatus();
    }
    const auto* from = reinterpret_cast<const uint8_t*>(in.data);
    auto* to = reinterpret_cast<uint8_t*>(result.data);
    if (!gray_input_) {
      BestValueLoops().gray_bytes(matrix_, from, in.elements() / 3, to);
      return absl::OkStatus();
    }
    const int results = gray_result_ ? 1 : 3;
    for (size_t i = 0; i < in.elements(); ++i, to += results)
      for (int c = 0; c < results; ++c)
        to[c] = ByteOf(MatrixRow(matrix_, c, from[i], 0, 0));
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return MatrixForm{matrix_};
  }

 private:
  static ColorMatrix Between(const std::string& from, const std::string& to) {
    const bool gray = from == "gray";
    const auto rgb = [](const std::string& s) {
      return s == "rgb" || s == "bgr";
    };
    ColorMatrix matrix = kSame;
    if (gray && rgb(to)) return kGrayToRgb;
    if (gray && to == "ycbcr") return kGrayToYcbcr;
    if (rgb(from) && to == "ycbcr") matrix = kRgbToYcbcr;
    if (rgb(from) && to == "gray") matrix = kRgbToGray;
    if (from == "ycbcr" && to == "gray") return kYcbcrToGray;
    if (from == "ycbcr" && rgb(to)) matrix = kYcbcrToRgb;
    if (from == "bgr")
      for (auto& row : matrix.m) std::swap(row[0], row[2]);
    if (to == "bgr") {
      std::swap(matrix.m[0], matrix.m[2]);
      std::swap(matrix.constant[0], matrix.constant[2]);
    }
    return matrix;
  }

  ColorMatrix matrix_;
  bool gray_input_, gray_result_;
};

constexpr KernelMaker kColorMakers[] = {
    {"brightness", Make<BrightnessContrast>},
    {"brightness_contrast", Make<BrightnessContrast>},
    {"contrast", Make<BrightnessContrast>},
    {"color_twist", Make<ColorTwist>},
    {"hsv", Make<ColorTwist>},
    {"hue", Make<ColorTwist>},
    {"saturation", Make<ColorTwist>},
    {"color_space_conversion", Make<ColorSpaceConversion>},
};

}  // namespace

constinit const KernelTable kColorKernels = kColorMakers;

}  // namespace leat::worker
