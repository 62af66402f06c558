// SPDX-License-Identifier: Apache-2.0
//
// Canvas: a picture that captions, pictures and strips are drawn into.
//
// Dots outside are not drawn. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/observe/previews.h"

namespace leat::cli {

struct Color {
  uint8_t r, g, b;
};
inline constexpr Color kPaper = {250, 250, 248};
inline constexpr Color kInk = {28, 28, 30};
inline constexpr Color kPale = {128, 128, 132};
inline constexpr Color kRed = {190, 30, 30};

inline constexpr int kMargin = 20;
inline constexpr int kSheetGap = 12;
inline constexpr int kLineGap = 4;

int LineHeight(int scale);
int TextWidth(size_t characters, int scale);
// Returns ASCII of at most `width` pixels; longer text ends in "..".
std::string CutToPixels(std::string_view text, int width, int scale);

class Canvas {
 public:
  // It is all kPaper. REQUIRES: width and height are positive.
  Canvas(int width, int height);

  // `text`: ASCII.
  void Write(std::string_view text, int x, int y, int scale, Color color);
  // REQUIRES: the picture is inside.
  void Paste(const RgbImage& picture, int x, int y);
  void Frame(int x, int y, int width, int height, Color color);
  void Dot(int x, int y, Color color);
  RgbImage Take() { return std::move(picture_); }

 private:
  uint8_t* At(int x, int y) {
    return &picture_.rgb[(static_cast<size_t>(y) * picture_.width + x) * 3];
  }
  RgbImage picture_;
};

}  // namespace leat::cli
