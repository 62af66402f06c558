// SPDX-License-Identifier: Apache-2.0
//
// WindowRule: which pixels a `window` of an image is: the same function when a
// job is created and when a sample is there.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/shapes/boxes.h"
#include "core/tensor/image_size.h"

namespace leat {

// Each pair is rows and columns.
using WindowParts = std::array<Interval, 2>;

struct WindowRule {
  // y, x, or height, width, are shares of the image's height and width.
  bool normalized_anchor = false, normalized_shape = false;

  static WindowRule Of(const Node& node);

  // Rounds as slice does (SliceRule), but that lengths in pixels are rounded,
  // too. kInvalidArgument: an argument is not in [0, 65500], not a number, or a
  // share of over 1; the window is empty or not inside the image.
  absl::StatusOr<WindowParts> At(ImageSize image, double y, double x,
                                 double height, double width) const;

  // The length that `extent` is, in any image; -1: it differs.
  int64_t Fixed(double extent) const;
};

}  // namespace leat
