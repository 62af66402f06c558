// SPDX-License-Identifier: Apache-2.0
//
// rotate, warp_affine, gaussian_blur.
#include "worker/image/loops/warp.h"

#include <algorithm>
#include <cmath>

#include "core/status.h"
#include "worker/image/formulas/affine.h"
#include "worker/image/formulas/exact_math.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/image_sides.h"

namespace leat::worker {
namespace {

using Floats = std::vector<double>;

constexpr int64_t kMostSide = 65'500;
constexpr int64_t kMostRadius = 4095;

// The common part of rotate and warp_affine: a map from the result to the
// image, for each sample.
class WarpKernel : public OperatorKernel {
 public:
  WarpKernel(const CheckedGraph& graph, uint32_t node)
      : filter_(ConstantArg<std::string>(graph, node, "interpolation") ==
                        "nearest"
                    ? WarpFilter::kNearest
                    : WarpFilter::kLinear),
        dali_(ConstantArg<std::string>(graph, node, "rule") == "dali") {
    const auto& size = ConstantArg<std::vector<int64_t>>(graph, node, "size");
    if (!size.empty()) size_ = ImageSize{size[0], size[1]};
    const auto& fill = ConstantArg<Floats>(graph, node, "fill_value");
    if (!fill.empty()) fill_ = static_cast<float>(fill[0]);
  }

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    RETURN_IF_ERROR(CheckSides(*result, kMostSide));
    const ImageSize image{result->dims[0], result->dims[1]};
    ASSIGN_OR_RETURN(const ImageSize size,
                     size_ ? *size_ : SizeOf(call, image));
    result->dims[0] = size.height;
    result->dims[1] = size.width;
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    ASSIGN_OR_RETURN(const WarpForm form,
                     WarpOf(call, {result.dims[0], result.dims[1]}));
    if (dali_)
      WarpByDali(in, form.dali_map, filter_, fill_, result);
    else
      Warp(in, form.map, filter_, fill_, result);
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    Tensor result;
    RETURN_IF_ERROR(Shape(call, &result));
    return WarpOf(call, {result.dims[0], result.dims[1]});
  }

 protected:
  // Returns the result's size, if none is given.
  virtual absl::StatusOr<ImageSize> SizeOf(const OperatorCall& call,
                                           ImageSize image) const = 0;
  virtual absl::StatusOr<Affine> MapOf(const OperatorCall& call,
                                       ImageSize image,
                                       ImageSize result) const = 0;
  virtual absl::StatusOr<DaliMap> DaliMapOf(const OperatorCall& call,
                                            ImageSize image,
                                            ImageSize result) const {
    ASSIGN_OR_RETURN(const Affine affine, MapOf(call, image, result));
    return affine.Floats();
  }
  static Affine ToCentre(ImageSize size) {
    return Affine::Move(static_cast<double>(size.width) / 2,
                        static_cast<double>(size.height) / 2);
  }
  static Affine FromCentre(ImageSize size) {
    return Affine::Move(static_cast<double>(-size.width) / 2,
                        static_cast<double>(-size.height) / 2);
  }

 private:
  absl::StatusOr<WarpForm> WarpOf(const OperatorCall& call,
                                  ImageSize result) const {
    const Tensor& in = *call.inputs[0];
    const ImageSize image{in.dims[0], in.dims[1]};
    WarpForm form{.dali = dali_,
                  .nearest = filter_ == WarpFilter::kNearest,
                  .fill = fill_};
    if (dali_) {
      ASSIGN_OR_RETURN(form.dali_map, DaliMapOf(call, image, result));
      return form;
    }
    ASSIGN_OR_RETURN(const Affine affine, MapOf(call, image, result));
    ASSIGN_OR_RETURN(form.map, affine.Fixed());
    return form;
  }

  const WarpFilter filter_;
  const bool dali_;
  std::optional<ImageSize> size_;
  std::optional<float> fill_;
};

class Rotate final : public WarpKernel {
 public:
  Rotate(const CheckedGraph& graph, uint32_t node)
      : WarpKernel(graph, node),
        angle_(FloatArg::Of(graph, node, "angle")),
        keep_(ConstantArg<bool>(graph, node, "keep_size")) {}

 private:
  absl::StatusOr<ImageSize> SizeOf(const OperatorCall& call,
                                   ImageSize image) const override {
    if (keep_) return image;
    ASSIGN_OR_RETURN(const double angle, angle_.In(call));
    return RotatedSize(image, angle);
  }
  absl::StatusOr<Affine> MapOf(const OperatorCall& call, ImageSize image,
                               ImageSize result) const override {
    ASSIGN_OR_RETURN(const double angle, angle_.In(call));
    return ToCentre(image)
        .After(Affine::Turn(-angle))
        .After(FromCentre(result));
  }
  absl::StatusOr<DaliMap> DaliMapOf(const OperatorCall& call, ImageSize image,
                                    ImageSize result) const override {
    ASSIGN_OR_RETURN(const double angle, angle_.In(call));
    return DaliTurn(image, result, angle);
  }

  const FloatArg angle_;
  const bool keep_;
};

class WarpAffine final : public WarpKernel {
 public:
  WarpAffine(const CheckedGraph& graph, uint32_t node, const Affine& matrix)
      : WarpKernel(graph, node), matrix_(matrix) {
    const char* const names[] = {"angle",   "scale",       "shear_x",
                                 "shear_y", "translate_x", "translate_y"};
    for (size_t i = 0; i < args_.size(); ++i)
      args_[i] = FloatArg::Of(graph, node, names[i]);
  }

 private:
  absl::StatusOr<ImageSize> SizeOf(const OperatorCall&,
                                   ImageSize image) const override {
    return image;
  }
  absl::StatusOr<Affine> MapOf(const OperatorCall& call, ImageSize,
                               ImageSize result) const override {
    double v[6];
    for (size_t i = 0; i < args_.size(); ++i) {
      ASSIGN_OR_RETURN(v[i], args_[i].In(call));
    }
    const auto [angle, scale, shear_x, shear_y, move_x, move_y] = v;
    if (angle == 0 && scale == 1 && shear_x == 0 && shear_y == 0 &&
        move_x == 0 && move_y == 0)
      return matrix_;
    const Affine forward = Affine::Move(move_x, move_y)
                               .After(ToCentre(result))
                               .After(Affine::Turn(angle))
                               .After(Affine::Scale(scale))
                               .After(Affine::Shear(shear_x, shear_y))
                               .After(FromCentre(result));
    ASSIGN_OR_RETURN(const Affine back, forward.Inverse());
    return matrix_.After(back);
  }

  const Affine matrix_;  // from the result to the image
  std::array<FloatArg, 6> args_;
};

// DALI's rule: weights exp(-x² / 2σ²) whose sum is 1; a σ of 0 is computed from
// the window, a window of 0 from σ.
class GaussianBlur final : public OperatorKernel {
 public:
  GaussianBlur(const CheckedGraph& graph, uint32_t node)
      : sigma_(FloatArg::Of(graph, node, "sigma")),
        window_(ConstantArg<int64_t>(graph, node, "window_size")) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    return CheckSides(*result);
  }

  // Two rows of floats, one of them with its reflections.
  uint64_t WorkBytes(const OperatorCall& call) const override {
    const Tensor& in = *call.inputs[0];
    return static_cast<uint64_t>(in.dims[1] + kMostRadius) *
           static_cast<uint64_t>(in.dims[2]) * 2 * sizeof(float);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const std::vector<float> weights, WeightsOf(call));
    Blur(*call.inputs[0], weights, result);
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(std::vector<float> weights, WeightsOf(call));
    return BlurForm{std::move(weights)};
  }

 private:
  absl::StatusOr<std::vector<float>> WeightsOf(const OperatorCall& call) const {
    ASSIGN_OR_RETURN(double sigma, sigma_.In(call));
    if (sigma == 0 && window_ == 0)
      return InvalidArgument(
          "argument \"sigma\" is 0, want more, since \"window_size\" is not "
          "given");
    const int64_t radius =
        window_ != 0
            ? (window_ - 1) / 2
            : std::min(static_cast<int64_t>(std::ceil(3 * sigma)), kMostRadius);
    if (sigma == 0) sigma = (static_cast<double>(radius) - 1) * 0.3 + 0.8;
    std::vector<double> exact;
    double sum = 0;
    for (int64_t k = 0; k <= radius; ++k) {
      const double x = static_cast<double>(k) / sigma;
      const double exponent = x * x / 2;
      exact.push_back(exponent > 30 ? 0 : ExactExp(-exponent));
      sum += exact.back() * (k == 0 ? 1 : 2);
    }
    std::vector<float> weights;
    for (const double weight : exact)
      weights.push_back(static_cast<float>(weight / sum));
    while (weights.size() > 1 && weights.back() == 0) weights.pop_back();
    return weights;
  }

  const FloatArg sigma_;
  const int64_t window_;
};

KernelOr MakeWarpAffine(const CheckedGraph& graph, uint32_t node) {
  const auto& m = ConstantArg<Floats>(graph, node, "matrix");
  Affine matrix{m[0], m[1], m[2], m[3], m[4], m[5]};
  if (!ConstantArg<bool>(graph, node, "inverse_map")) {
    const bool dali = ConstantArg<std::string>(graph, node, "rule") == "dali";
    ASSIGN_OR_RETURN(matrix, dali ? matrix.DaliInverse() : matrix.Inverse());
  }
  return std::make_shared<WarpAffine>(graph, node, matrix);
}

constexpr KernelMaker kWarpMakers[] = {
    {"rotate", Make<Rotate>},
    {"warp_affine", MakeWarpAffine},
    {"gaussian_blur", Make<GaussianBlur>},
};

}  // namespace

constinit const KernelTable kWarpKernels = kWarpMakers;

}  // namespace leat::worker
