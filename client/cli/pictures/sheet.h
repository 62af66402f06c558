// SPDX-License-Identifier: Apache-2.0
//
// The contact sheet: what a trainer sees at one step, as one picture. A grid of
// the rows' images, under each its label (the class's name) and sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/base/environment.h"
#include "client/cli/pictures/picture.h"

namespace leat::cli {

struct Tile {
  Picture picture;
  std::string label;
  std::string detail;
  bool bad = false;  // stands out
};

struct SheetLayout {
  int columns = 0;  // 0: about 4:3 in all
  int smallest_tile = 96;
  int largest_tile = 256;
};

// REQUIRES: tiles is not empty.
Picture DrawSheet(std::string_view title, std::string_view detail,
                  const std::vector<Tile>& tiles, const SheetLayout& layout);

struct Sheet {
  Picture picture;
  size_t tiles = 0;
  std::string note;  // how values became brightness, if not one to one
};

// `image_field`: empty for the first that is an image. The label is the field
// "label", or else the only whole number of the row.
// kInvalidArgument: no image field, or no row.
absl::StatusOr<Sheet> MakeSheet(const Rows& rows, std::string_view image_field,
                                const SheetLayout& layout);

}  // namespace leat::cli
