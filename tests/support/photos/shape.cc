// SPDX-License-Identifier: Apache-2.0
#include "tests/support/photos/shape.h"

#include <algorithm>
#include <cmath>

namespace leat::testing {
namespace {

float Length(Point p) { return std::sqrt(p.x * p.x + p.y * p.y); }

float LineDistance(Point at, Point a, Point b) {
  const Point along = {b.x - a.x, b.y - a.y};
  const Point from = {at.x - a.x, at.y - a.y};
  const float square = along.x * along.x + along.y * along.y;
  const float share = std::clamp(
      (from.x * along.x + from.y * along.y) / std::max(square, 1e-9f), 0.0f,
      1.0f);
  return Length({from.x - along.x * share, from.y - along.y * share});
}

// Approximates the distance well near the border, where it counts.
float EllipseDistance(const Part& part, Point at) {
  Point p = {at.x - part.points[0].x, at.y - part.points[0].y};
  if (part.turn != 0) {
    const float sine = SineOfTurns(part.turn);
    const float cosine = CosineOfTurns(part.turn);
    p = {p.x * cosine + p.y * sine, p.y * cosine - p.x * sine};
  }
  const Point radii = part.points[1];
  const Point scaled = {p.x / radii.x, p.y / radii.y};
  const float from = Length(scaled);
  const float slope = Length({scaled.x / radii.x, scaled.y / radii.y});
  if (from < 0.3f) return (from - 1) * std::min(radii.x, radii.y);
  return from * (from - 1) / slope;
}

float PolygonDistance(const Part& part, Point at) {
  float nearest = 1e9f;
  bool inside = false;
  for (int i = 0, j = part.corners - 1; i < part.corners; j = i++) {
    const Point a = part.points[i], b = part.points[j];
    nearest = std::min(nearest, LineDistance(at, a, b));
    if ((a.y > at.y) != (b.y > at.y) &&
        at.x < a.x + (b.x - a.x) * (at.y - a.y) / (b.y - a.y))
      inside = !inside;
  }
  return inside ? -nearest : nearest;
}

bool Odd(float value) { return (Texture::Floor(value) & 1) != 0; }

}  // namespace

Colour ColourOf(const Tint& tint) {
  const auto channel = [&](float offset) {
    float at = tint.hue + offset;
    at = (at - static_cast<float>(Texture::Floor(at))) * 6;
    const float full = std::clamp(std::abs(at - 3) - 1, 0.0f, 1.0f);
    return 255 * tint.value * (1 - tint.saturation * (1 - full));
  };
  return {channel(0), channel(2.0f / 3), channel(1.0f / 3)};
}

float Part::Distance(Point at) const {
  float far = form == Form::kEllipse   ? EllipseDistance(*this, at)
              : form == Form::kPolygon ? PolygonDistance(*this, at)
                                       : LineDistance(at, points[0], points[1]);
  far -= border;
  if (hollow > 0) far = std::max(far, -far - hollow);
  return std::max({far, above - at.y, at.y - below});
}

Box Part::Bounds() const {
  Box box = {points[0], points[0]};
  if (form == Form::kEllipse) {
    const Point radii = points[1];
    const float wide = turn == 0 ? radii.x : std::max(radii.x, radii.y);
    const float high = turn == 0 ? radii.y : wide;
    box = {{points[0].x - wide, points[0].y - high},
           {points[0].x + wide, points[0].y + high}};
  } else {
    for (int i = 1; i < (form == Form::kLine ? 2 : corners); ++i) {
      const Point p = points[i];
      box.low = {std::min(box.low.x, p.x), std::min(box.low.y, p.y)};
      box.high = {std::max(box.high.x, p.x), std::max(box.high.y, p.y)};
    }
  }
  return {{box.low.x - border, box.low.y - border},
          {box.high.x + border, box.high.y + border}};
}

Colour Painted(const Part& part, Point at) {
  const Texture& clouds = Textures::Get().clouds;
  const float x = at.x - part.points[0].x, y = at.y - part.points[0].y;
  bool second = false;
  switch (part.pattern) {
    case Part::Pattern::kPlain:
      break;
    case Part::Pattern::kWedges: {
      // Draws lines from pole to pole of a solid.
      const float high = y / part.points[1].y;
      const float width =
          part.points[1].x * std::sqrt(std::max(0.02f, 1 - high * high));
      second = Odd((x / width + 1) * part.pitch);
      break;
    }
    case Part::Pattern::kStripes:
      second = Odd((x * 0.94f + y * 0.34f) / part.pitch);
      break;
    case Part::Pattern::kSpots: {
      const int row = Texture::Floor(y / part.pitch);
      const float shifted = x / part.pitch + ((row & 1) != 0 ? 0.5f : 0.0f);
      const float dx =
          shifted - static_cast<float>(Texture::Floor(shifted)) - 0.5f;
      const float dy = y / part.pitch - static_cast<float>(row) - 0.5f;
      second = dx * dx + dy * dy < 0.08f;
      break;
    }
    case Part::Pattern::kMottled:
      return part.colour.To(
          part.second,
          std::clamp(0.5f + clouds.At(x * 90, y * 90), 0.0f, 1.0f));
  }
  return second ? part.second : part.colour;
}

}  // namespace leat::testing
