// SPDX-License-Identifier: Apache-2.0
//
// Loops over the pixels of rotate, warp_affine and gaussian_blur.
#pragma once

#include <optional>
#include <span>

#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/warp.h"
#include "worker/image/loops/tensor.h"

namespace leat::worker {

enum class WarpFilter : uint8_t { kLinear, kNearest };

// `fill` unset: the nearest pixel of the image's edge. Images (height, width,
// channels) of uint8 or float32, the same in both. REQUIRES: sides of at most
// 65,500.
void Warp(const Tensor& in, const WarpMap& map, WarpFilter filter,
          std::optional<float> fill, const Tensor& out);

// The same by rule "dali". REQUIRES: places of the map below 2^31.
void WarpByDali(const Tensor& in, const DaliMap& map, WarpFilter filter,
                std::optional<float> fill, const Tensor& out);

// Both axes by the same weights: of the pixel itself, of its neighbours at the
// distance 1, 2, … The image goes on as its reflection, without its edge twice.
void Blur(const Tensor& in, std::span<const float> weights, const Tensor& out);

}  // namespace leat::worker
