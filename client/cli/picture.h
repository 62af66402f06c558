// SPDX-License-Identifier: Apache-2.0
//
// Picture: 8-bit RGB, and how a field of a batch becomes one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/environment.h"

namespace leat::cli {

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // height × width × 3
};

// One row of a field, read as an image: (H,W), (H,W,1|3|4) or (1|3|4,H,W); the
// first that fits.
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
// kInvalidArgument: `shape` (rows first) or `dtype` is no image's.
absl::StatusOr<ImageShape> ImageShapeOf(const Field& field);

// The field called `wanted`, or if that is empty the first that is an image.
// kInvalidArgument: none; lists the fields.
absl::StatusOr<const Field*> FindImage(const std::vector<Field>& fields,
                                       std::string_view wanted);

struct Pictures {
  std::vector<Picture> rows;
  // How values became brightness, if not one to one: "stretched from ...".
  std::string note;
};
// uint8 is shown as it is. Floats in [0, 1] are scaled by 255 and floats in
// [0, 255] taken as they are; others, and other integers, are stretched from
// the least to the greatest value of each channel over all rows, which undoes a
// normalisation well enough to look at. NaN is black. Alpha is dropped.
absl::StatusOr<Pictures> ToPictures(const Field& field);

// Shrunk by area average until no side exceeds `largest`; if both sides are
// under `smallest`, enlarged by the least whole factor that mends it.
Picture Fit(const Picture& picture, int smallest, int largest);

// kInternal: libpng's reason.
absl::StatusOr<std::string> EncodePng(const Picture& picture);

}  // namespace leat::cli
