// SPDX-License-Identifier: Apache-2.0
#include "worker/image/views/colours.h"

#include <cstring>
#include <utility>

#include "worker/image/formulas/pixel.h"

namespace leat::worker {
namespace {

void Convert(Colours colours, const uint8_t rgb[3], uint8_t* out) {
  switch (colours) {
    case Colours::kRgb:
      memcpy(out, rgb, 3);
      break;
    case Colours::kGray:
      *out = Luma(rgb);
      break;
    case Colours::kBgr:
      for (int c = 0; c < 3; ++c) out[c] = rgb[2 - c];
      break;
    case Colours::kYcbcr:
      RgbToYcbcr(rgb, out);
      break;
  }
}

}  // namespace

std::optional<Colours> ParseColours(std::string_view name) {
  constexpr std::pair<std::string_view, Colours> kNames[] = {
      {"rgb", Colours::kRgb},
      {"gray", Colours::kGray},
      {"bgr", Colours::kBgr},
      {"ycbcr", Colours::kYcbcr}};
  for (const auto& [text, colours] : kNames)
    if (text == name) return colours;
  return std::nullopt;
}

void ConvertRgb(Colours colours, size_t pixels, uint8_t* rgb) {
  if (colours == Colours::kRgb) return;
  for (size_t i = 0; i < pixels; ++i, rgb += 3) {
    const uint8_t pixel[3] = {rgb[0], rgb[1], rgb[2]};
    Convert(colours, pixel, rgb);
  }
}

void TurnAndConvert(const uint8_t* stored, StoredSize size, int channels,
                    Orientation orientation, Colours colours, uint8_t* out) {
  const TurnedSize turned = orientation.Turned(size);
  const int step = ChannelsOf(colours);
  for (int64_t y = 0; y < turned.height; ++y)
    for (int64_t x = 0; x < turned.width; ++x, out += step) {
      int64_t u = orientation.transposed ? y : x;
      int64_t v = orientation.transposed ? x : y;
      if (orientation.mirror_x) u = size.width - 1 - u;
      if (orientation.mirror_y) v = size.height - 1 - v;
      const uint8_t* from = stored + (v * size.width + u) * channels;
      if (channels == 3) {
        Convert(colours, from, out);
      } else if (colours == Colours::kGray) {
        *out = *from;
      } else {
        const uint8_t pixel[3] = {*from, *from, *from};
        Convert(colours, pixel, out);
      }
    }
}

}  // namespace leat::worker
