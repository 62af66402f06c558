// SPDX-License-Identifier: Apache-2.0
//
// The contact sheet: one step, as a trainer sees it, in one picture. It is a
// grid of the rows' images, each with its label (the class's name) and sample
// below it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/base/environment.h"
#include "client/cli/previews/png.h"

namespace leat::cli {

struct Tile {
  RgbImage picture;
  std::string label;
  std::string detail;
  bool bad = false;  // highlighted
};

struct SheetLayout {
  int columns = 0;  // 0: about 4:3 overall
  int smallest_tile = 96;
  int largest_tile = 256;
};

// REQUIRES: tiles is not empty.
RgbImage DrawSheet(std::string_view title, std::string_view detail,
                   const std::vector<Tile>& tiles, const SheetLayout& layout);

struct Sheet {
  RgbImage picture;
  size_t tiles = 0;
  std::string note;  // how values became brightness, unless one to one
};

// `image_field`: empty for the first image field. The label is the field
// "label", or else the only integer field. kInvalidArgument: no image field, or
// no row.
absl::StatusOr<Sheet> MakeSheet(const Rows& rows, std::string_view image_field,
                                const SheetLayout& layout);

}  // namespace leat::cli
