// SPDX-License-Identifier: Apache-2.0
//
// WindowRule computes which pixels of an image a `window` selects: the same
// function at job creation and for each sample.
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
  // True if y, x, or height, width, are fractions of the image's height and
  // width.
  bool normalized_anchor = false, normalized_shape = false;

  static WindowRule Of(const Node& node);

  // Returns the window. Rounds as slice does (SliceRule), except that lengths
  // in pixels are rounded, too. kInvalidArgument: an argument is not in [0,
  // 65500], not a number, or a fraction over 1; the window is empty or not
  // inside the image.
  absl::StatusOr<WindowParts> At(ImageSize image, double y, double x,
                                 double height, double width) const;

  // Returns the length in pixels for `extent`, in any image; -1: it differs.
  int64_t Fixed(double extent) const;
};

}  // namespace leat
