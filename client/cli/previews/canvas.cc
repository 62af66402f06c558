// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/canvas.h"

#include <algorithm>
#include <cstring>

#include "client/cli/base/text.h"
#include "client/cli/previews/font.h"

namespace leat::cli {

int LineHeight(int scale) { return (kGlyphHeight - 1) * scale + kLineGap; }

int TextWidth(size_t characters, int scale) {
  return static_cast<int>(characters) * (kGlyphWidth + 1) * scale;
}

std::string CutToPixels(std::string_view text, int width, int scale) {
  std::string ascii;
  for (const char c : Printable(text)) {
    // One question mark for a character of several bytes.
    if ((static_cast<uint8_t>(c) & 0xC0) != 0x80) {
      ascii += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  const int room = std::max(1, width / TextWidth(1, scale));
  if (std::ssize(ascii) > room) {
    ascii.resize(static_cast<size_t>(std::max(0, room - 2)));
    ascii += "..";
  }
  return ascii;
}

Canvas::Canvas(int width, int height) : picture_{width, height, {}} {
  picture_.rgb.resize(static_cast<size_t>(width) * height * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) Dot(x, y, kPaper);
  }
}

void Canvas::Write(std::string_view text, int x, int y, int scale,
                   Color color) {
  for (const char c : text) {
    const uint8_t* glyph = Glyph(c);
    for (int v = 0; v < kGlyphHeight * scale; ++v) {
      for (int u = 0; u < kGlyphWidth * scale; ++u) {
        if (glyph[v / scale] >> (kGlyphWidth - 1 - u / scale) & 1) {
          Dot(x + u, y + v, color);
        }
      }
    }
    x += TextWidth(1, scale);
  }
}

void Canvas::Paste(const RgbImage& picture, int x, int y) {
  const auto bytes = static_cast<size_t>(picture.width) * 3;
  for (int v = 0; v < picture.height; ++v) {
    std::memcpy(At(x, y + v), &picture.rgb[v * bytes], bytes);
  }
}

void Canvas::Frame(int x, int y, int width, int height, Color color) {
  for (int u = 0; u < width; ++u) {
    Dot(x + u, y, color);
    Dot(x + u, y + height - 1, color);
  }
  for (int v = 0; v < height; ++v) {
    Dot(x, y + v, color);
    Dot(x + width - 1, y + v, color);
  }
}

void Canvas::Dot(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= picture_.width || y >= picture_.height) return;
  uint8_t* at = At(x, y);
  at[0] = color.r;
  at[1] = color.g;
  at[2] = color.b;
}

}  // namespace leat::cli
