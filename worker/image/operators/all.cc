// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "worker/image/operators/augment.h"
#include "worker/image/operators/geometry.h"
#include "worker/image/operators/kernel.h"
#include "worker/image/operators/values.h"

namespace leat::worker {
namespace {

using Maker = absl::StatusOr<std::shared_ptr<const OperatorKernel>> (*)(
    const CheckedGraph& graph, uint32_t node);

struct Entry {
  std::string_view op;
  Maker make;
};

// Sorted by the operator's name.
constexpr Entry kKernels[] = {
    {"augment", MakeAugment},
    {"auto_augment", MakeAutoAugment},
    {"equalize", MakeEqualize},
    {"rand_augment", MakeRandAugment},
    {"trivial_augment_wide", MakeTrivialAugment},
    {"beta", MakeBeta},
    {"cutmix_paste", MakeCutMix},
    {"cutmix_share", MakeCutMixShare},
    {"choice", MakeChoice},
    {"lookup_table", MakeLookup},
    {"noise_gaussian", MakeGaussianNoise},
    {"noise_salt_and_pepper", MakeSaltAndPepper},
    {"noise_shot", MakeShotNoise},
    {"normal", MakeNormal},
    {"one_hot", MakeOneHot},
    {"standardize", MakeStandardize},
    {"abs", MakeUnary},
    {"add", MakeBinary},
    {"bitwise_and", MakeBinary},
    {"bitwise_or", MakeBinary},
    {"bitwise_xor", MakeBinary},
    {"brightness", MakeBrightnessContrast},
    {"brightness_contrast", MakeBrightnessContrast},
    {"color_space_conversion", MakeColorSpaceConversion},
    {"color_twist", MakeColorTwist},
    {"constant", MakeConstant},
    {"contrast", MakeBrightnessContrast},
    {"crop_mirror_normalize", MakeCropMirrorNormalize},
    {"div", MakeBinary},
    {"eq", MakeBinary},
    {"erase", MakeErase},
    {"floordiv", MakeBinary},
    {"gaussian_blur", MakeGaussianBlur},
    {"ge", MakeBinary},
    {"gt", MakeBinary},
    {"hsv", MakeColorTwist},
    {"hue", MakeColorTwist},
    {"invert", MakeUnary},
    {"jpeg_compression_distortion", MakeJpegDistortion},
    {"le", MakeBinary},
    {"length", MakeLength},
    {"lt", MakeBinary},
    {"max", MakeBinary},
    {"min", MakeBinary},
    {"mul", MakeBinary},
    {"ne", MakeBinary},
    {"neg", MakeUnary},
    {"pad", MakePad},
    {"peek_shape", MakePeekShape},
    {"reshape", MakeReshape},
    {"rotate", MakeRotate},
    {"saturation", MakeColorTwist},
    {"slice", MakeSlice},
    {"stored_bytes", MakeStoredBytes},
    {"sub", MakeBinary},
    {"warp_affine", MakeWarpAffine},
    {"where", MakeWhere},
};

}  // namespace

absl::StatusOr<std::shared_ptr<const OperatorKernel>> MakeOperatorKernel(
    const CheckedGraph& graph, uint32_t node) {
  for (const Entry& entry : kKernels)
    if (entry.op == graph.graph.nodes[node].op) return entry.make(graph, node);
  return nullptr;
}

}  // namespace leat::worker
