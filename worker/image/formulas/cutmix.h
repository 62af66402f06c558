// SPDX-License-Identifier: Apache-2.0
//
// CutMix's box: Yun et al., "CutMix: regularization strategy to train strong
// classifiers with localizable features", ICCV 2019, with the rounding of
// torchvision's transforms.v2.CutMix.
//
//   half = ⌊side · sqrt(1 - lam) / 2⌋, on both axes
//   box = [center - half, center + half), cut off at the edges
//
// A centre is given as a share of the side: the pixel ⌊share · side⌋. The kept
// share of the image is 1 - area(box) / area(image).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "worker/image/base/rect.h"

namespace leat::worker {

struct CutMixDraw {
  double lam = 1, center_y = 0.5, center_x = 0.5;  // each in [0, 1]
};

// REQUIRES: sides ≥ 1.
inline Rect CutMixBox(int64_t height, int64_t width, const CutMixDraw& draw) {
  const double share = 0.5 * std::sqrt(1 - draw.lam);
  const auto along = [share](int64_t side, double center, int64_t* begin,
                             int64_t* length) {
    const auto scaled = [side](double part) {
      return static_cast<int64_t>(part * static_cast<double>(side));
    };
    const int64_t at = std::min(scaled(center), side - 1);
    *begin = std::max<int64_t>(at - scaled(share), 0);
    *length = std::min(at + scaled(share), side) - *begin;
  };
  Rect box{};
  along(height, draw.center_y, &box.y, &box.height);
  along(width, draw.center_x, &box.x, &box.width);
  return box;
}

inline float CutMixShare(int64_t height, int64_t width, const Rect& box) {
  const auto area = static_cast<double>(box.height * box.width);
  return static_cast<float>(1 - area / static_cast<double>(height * width));
}

}  // namespace leat::worker
