// SPDX-License-Identifier: Apache-2.0
//
// The backdrop of a drawn photo: ten kinds of places; no two photos show the
// same part in the same light.
#pragma once

#include <array>
#include <string_view>

#include "tests/support/photos/shape.h"

namespace leat::testing {

inline constexpr std::array<std::string_view, 10> kBackdrops = {
    "grass", "sand",  "sky",    "bricks", "wood",
    "water", "cloth", "leaves", "stones", "snow"};

class Backdrop {
 public:
  // REQUIRES: `kind` is an index of kBackdrops.
  Backdrop(int kind, Random* random);

  // Returns the colour at a place. The photo's shorter side is from -1 to 1.
  Colour At(Point at) const;

 private:
  Colour Sky(Point at) const;
  Colour Ground(Point at, float depth) const;
  Colour Bricks(Point at) const;
  Colour Planks(Point at) const;
  Colour Water(Point at) const;
  Colour Cloth(Point at) const;
  Colour Cells(Point at, float gap, float bright) const;
  float Noise(float x, float y) const;

  const int kind_;
  const Textures& textures_;
  const float left_, top_;  // visible part of the textures
  const float scale_;
  const float horizon_;
  const float sine_, cosine_;
  Colour first_, second_, third_;
};

}  // namespace leat::testing
