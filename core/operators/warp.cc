// SPDX-License-Identifier: Apache-2.0
//
// Operators that compute pixels from their surroundings: rotate, warp_affine,
// gaussian_blur, jpeg_compression_distortion.
#include <cmath>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/image_size.h"

namespace leat {
namespace {

absl::Status WantPixels(const ValueType& type) {
  RETURN_IF_ERROR(WantImage(type));
  if (type.dtype == DType::kUint8 || type.dtype == DType::kFloat32)
    return absl::OkStatus();
  return InvalidArgument("input is {}, want uint8 or float32", TypeText(type));
}

// Accepts what rotate and warp_affine take.
absl::Status WantMoved(const ValueType& type) {
  RETURN_IF_ERROR(WantPixels(type));
  return WantSides(type);
}

TypesOr InferRotate(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantMoved(inputs[0]));
  RETURN_IF_ERROR(WantAtMostOne(*node, "fill_value"));
  ASSIGN_OR_RETURN(const ImageSize size, OptionalSize(node));
  const bool keep = ArgOf<bool>(*node, "keep_size");
  if (keep && size.height > 0)
    return InvalidArgument(
        "arguments \"keep_size\" and \"size\" are both given, want one");
  if (keep) return std::vector<ValueType>{inputs[0]};
  const int64_t channels = inputs[0].shape[2];
  if (size.height > 0)
    return OneTensor(inputs[0].dtype, {size.height, size.width, channels});
  return OneTensor(inputs[0].dtype, {-1, -1, channels});
}

// Returns the determinant. Workers invert a matrix of rule "dali" in floats, in
// which it may be 0.
double DeterminantOf(const Floats& matrix, bool dali) {
  const auto of = [&](size_t i) { return static_cast<float>(matrix[i]); };
  const float main = of(0) * of(4), other = of(1) * of(3);
  if (dali && main == other) return 0;
  return matrix[0] * matrix[4] - matrix[1] * matrix[3];
}

TypesOr InferWarpAffine(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantMoved(inputs[0]));
  RETURN_IF_ERROR(WantAtMostOne(*node, "fill_value"));
  const auto& matrix = ArgOf<Floats>(*node, "matrix");
  if (matrix.size() != 6)
    return InvalidArgument(
        "argument \"matrix\" has {} numbers, want 6: two rows of three",
        matrix.size());
  const double determinant =
      DeterminantOf(matrix, ArgOf<std::string>(*node, "rule") == "dali");
  if (!ArgOf<bool>(*node, "inverse_map") && !(std::fabs(determinant) > 1e-12))
    return InvalidArgument(
        "argument \"matrix\" has the determinant {}, want one that can be "
        "inverted",
        determinant);
  ASSIGN_OR_RETURN(const ImageSize size, OptionalSize(node));
  if (size.height == 0) return std::vector<ValueType>{inputs[0]};
  return OneTensor(inputs[0].dtype,
                   {size.height, size.width, inputs[0].shape[2]});
}

TypesOr InferGaussianBlur(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantPixels(inputs[0]));
  const int64_t window = ArgOf<int64_t>(*node, "window_size");
  if (window != 0 && window % 2 == 0)
    return InvalidArgument(
        "argument \"window_size\" is {}, want an odd number, or 0", window);
  const auto* sigma = std::get_if<double>(&node->args.at("sigma"));
  if (window == 0 && sigma != nullptr && *sigma == 0)
    return InvalidArgument(
        "arguments \"sigma\" and \"window_size\" are both 0, want at least "
        "one of them");
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferJpegDistortion(Node*, Inputs inputs) {
  RETURN_IF_ERROR(WantUint8Image(inputs[0]));
  RETURN_IF_ERROR(WantSides(inputs[0]));
  const int64_t channels = inputs[0].shape[2];
  if (channels != 1 && channels != 3)
    return InvalidArgument("input is {}, want 1 or 3 channels",
                           TypeText(inputs[0]));
  return std::vector<ValueType>{inputs[0]};
}

std::vector<ArgInfo> WarpArgs(std::string size_doc) {
  return {IntsArg("size", 1, kMaxSide,
                  "height and width of the result, or one number for both; "
                  "none: " +
                      std::move(size_doc)),
          FloatsArg("fill_value", -1e30, 1e30,
                    "outside the image; none: the nearest pixel of its edge"),
          Choice("interpolation", Text("linear"), {"linear", "nearest"},
                 "between pixels"),
          PlacesRuleArg()};
}

ArgInfo AngleArg(std::string name, std::optional<Value> value,
                 std::string doc) {
  return PerSample(Ranged(
      Arg(std::move(name), ArgType::kFloat, std::move(value), std::move(doc)),
      -1e6, 1e6));
}

}  // namespace

void AddWarpOperators(OperatorList* list) {
  list->push_back(
      {Operator("rotate", 1, 1,
                Join({AngleArg("angle", std::nullopt,
                               "degrees, counter-clockwise as one sees it"),
                      FlagArg("keep_size", false,
                              "the result has the image's size")},
                     WarpArgs("what holds the whole of it")),
                "the image turned about its centre"),
       InferRotate});
  list->push_back(
      {Operator(
           "warp_affine", 1, 1,
           Join({Ranged(Arg("matrix", ArgType::kFloats,
                            Value(Floats{1, 0, 0, 0, 1, 0}),
                            "(x, y) -> (m0 x + m1 y + m2, m3 x + m4 y + m5); "
                            "the centre of the first pixel is (0.5, 0.5)"),
                        -1e6, 1e6),
                 FlagArg("inverse_map", true,
                         "the matrix leads from the result to the image"),
                 AngleArg("angle", Value(0.0),
                          "moreover, the result is turned about its centre: "
                          "degrees, counter-clockwise"),
                 Scalar("scale", 1, 1e-3, 1e3, "and enlarged before that"),
                 Scalar("shear_x", 0, -1e3, 1e3,
                        "and before that sheared: x + shear_x * y"),
                 Scalar("shear_y", 0, -1e3, 1e3,
                        "and before that sheared: y + shear_y * x"),
                 Scalar("translate_x", 0, -1e6, 1e6,
                        "and at last moved to the right, in pixels"),
                 Scalar("translate_y", 0, -1e6, 1e6,
                        "and moved down, in pixels")},
                WarpArgs("the image's")),
           "the image under an affine map"),
       InferWarpAffine});
  list->push_back(
      {Operator(
           "gaussian_blur", 1, 1,
           {Scalar("sigma", 0, 0, 1e3,
                   "in pixels; 0: ((window_size - 1) / 2 - 1) * 0.3 + 0.8"),
            IntArg("window_size", 0, 0, 8191,
                   "diameter of the kernel, odd; 0: 2 * ceil(3 * sigma) + "
                   "1")},
           "blurred; the border mirrors the image, its edge not repeated"),
       InferGaussianBlur});
  list->push_back(
      {Operator("jpeg_compression_distortion", 1, 1,
                {Scalar("quality", 50, 1, 100,
                        "of libjpeg's scale; rounded to an integer")},
                "what JPEG of that quality, with halved colours, leaves"),
       InferJpegDistortion});
}

}  // namespace leat
