// SPDX-License-Identifier: Apache-2.0
//
// A thing in a photo is a list of parts, painted one over the other. A part
// returns how far each place is from its border, so that borders are smooth at
// every size and a round part can be shaded like a solid one.
//
// Places are in the thing's own units: about -1 … 1 each way, y downwards.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/photos/noise.h"

namespace leat::testing {

struct Colour {
  float r, g, b;  // 0 … 255

  Colour operator*(float by) const { return {r * by, g * by, b * by}; }
  Colour To(const Colour& other, float by) const {
    return {r + (other.r - r) * by, g + (other.g - g) * by,
            b + (other.b - b) * by};
  }
};

struct Tint {
  float hue;  // in turns, from red by green to blue
  float saturation, value;
};
Colour ColourOf(const Tint& tint);

struct Point {
  float x, y;
};

struct Box {
  Point low, high;

  bool Has(Point at, float margin) const {
    return at.x > low.x - margin && at.x < high.x + margin &&
           at.y > low.y - margin && at.y < high.y + margin;
  }
};

struct Part {
  enum class Form { kEllipse, kPolygon, kLine };
  // How the second colour is laid over the first.
  enum class Pattern { kPlain, kWedges, kStripes, kSpots, kMottled };

  Form form = Form::kEllipse;
  // An ellipse's middle and radii, a line's ends, a polygon's corners in
  // order.
  std::array<Point, 6> points = {};
  int corners = 0;      // polygon: 3 … 6
  float turn = 0;       // ellipse: about its middle, in turns
  float border = 0;     // added all around: half a line's width, round corners
  float hollow = 0;     // > 0: only a ring of this width is left
  float above = -1e9f;  // nothing is left where y is less
  float below = 1e9f;   // nothing is left where y is greater
  Colour colour = {};
  Colour second = {};
  Pattern pattern = Pattern::kPlain;
  float pitch = 0.3f;  // stripes and spots; wedges: half the whole width
  float round = 0;     // 0 … 1: how much the border is shaded like a solid's

  // Returns the distance of a place outside of the part; negative inside.
  float Distance(Point at) const;
  // Returns a box around all of it.
  Box Bounds() const;
};

using Parts = std::vector<Part>;

// Returns the part's colour at a place, without light.
Colour Painted(const Part& part, Point at);

}  // namespace leat::testing
