// SPDX-License-Identifier: Apache-2.0
//
// Colours: the meaning of a decoded image's channels, and conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "worker/image/resample/geometry.h"

namespace leat::worker {

// worker/image/formulas/pixel.h has the formulas.
enum class Colours : uint8_t { kRgb, kGray, kBgr, kYcbcr };

// Parses "rgb", "gray", "bgr", "ycbcr".
std::optional<Colours> ParseColours(std::string_view name);

inline int ChannelsOf(Colours colours) {
  return colours == Colours::kGray ? 1 : 3;
}

// Converts RGB pixels to `colours`, in place. REQUIRES: not kGray.
void ConvertRgb(Colours colours, size_t pixels, uint8_t* rgb);

// Turns an image of 1 channel (gray) or 3 (RGB) and converts it to `colours`.
// Both images are dense and do not overlap.
void TurnAndConvert(const uint8_t* stored, StoredSize size, int channels,
                    Orientation orientation, Colours colours, uint8_t* out);

}  // namespace leat::worker
