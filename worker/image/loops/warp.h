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

// Pixels outside the image have the value `fill`; if that is unset, they repeat
// the nearest pixel of its edge. Images are (height, width, channels) of uint8
// or float32, the same in both. REQUIRES: sides of at most 65,500.
void Warp(const Tensor& in, const WarpMap& map, WarpFilter filter,
          std::optional<float> fill, const Tensor& out);

// The same by rule "dali". REQUIRES: the map's coordinates are below 2^31.
void WarpByDali(const Tensor& in, const DaliMap& map, WarpFilter filter,
                std::optional<float> fill, const Tensor& out);

// Blurs both axes by the same weights: that of the pixel itself, then those of
// its neighbours at the distances 1, 2, … Beyond its edge the image is
// reflected, without repeating the edge.
void Blur(const Tensor& in, std::span<const float> weights, const Tensor& out);

}  // namespace leat::worker
