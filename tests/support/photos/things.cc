// SPDX-License-Identifier: Apache-2.0
//
// Random numbers are drawn in statements and braces, where C++ defines the
// order, and never twice among a function's arguments, where it does not.
#include "tests/support/photos/things.h"

#include <algorithm>
#include <iterator>

namespace leat::testing {
namespace {

using Form = Part::Form;
using Pattern = Part::Pattern;

constexpr Colour kDark = {38, 36, 40};
constexpr Colour kGlass = {150, 185, 205};
constexpr Colour kBark = {104, 74, 50};

Part Ellipse(Point middle, Point radii, const Colour& colour) {
  return {.form = Form::kEllipse, .points = {middle, radii}, .colour = colour};
}

Part Line(Point from, Point to, float width, const Colour& colour) {
  return {.form = Form::kLine,
          .points = {from, to},
          .border = width / 2,
          .colour = colour};
}

Part Polygon(std::initializer_list<Point> corners, const Colour& colour) {
  Part part = {.form = Form::kPolygon, .colour = colour};
  for (const Point& corner : corners) part.points[part.corners++] = corner;
  return part;
}

Part Rectangle(Point low, Point high, const Colour& colour) {
  return Polygon({low, {high.x, low.y}, high, {low.x, high.y}}, colour);
}

Part With(Part part, Pattern pattern, const Colour& second, float pitch) {
  part.pattern = pattern;
  part.second = second;
  part.pitch = pitch;
  return part;
}

Part Round(Part part, float round) {
  part.round = round;
  return part;
}

Colour Pale(Random* random) {
  return ColourOf({random->Within(0, 1), random->Within(0.05f, 0.2f),
                   random->Within(0.85f, 0.98f)});
}

Colour Green(Random* random) {
  return ColourOf({random->Within(0.22f, 0.36f), random->Within(0.5f, 0.8f),
                   random->Within(0.35f, 0.6f)});
}

Parts Ball(const Colour& colour, Random* random) {
  const int kind = random->Below(3);
  const Colour second = Pale(random);
  Part ball = Ellipse({0, 0}, {1, 1}, colour);
  if (kind == 0)
    ball = With(ball, Pattern::kWedges, second,
                static_cast<float>(2 + random->Below(2)));
  else if (kind == 1)
    ball = With(ball, Pattern::kSpots, second, random->Within(0.4f, 0.6f));
  else
    ball = With(ball, Pattern::kStripes, second, random->Within(0.35f, 0.7f));
  Part glint = Ellipse({-0.36f, -0.42f}, {0.16f, 0.1f}, {250, 250, 248});
  glint.turn = -0.12f;
  return {Round(ball, 1), glint};
}

Parts Boat(const Colour& colour, Random* random) {
  const float stern = random->Within(0.55f, 0.8f);
  const float mast = random->Within(-0.1f, 0.1f);
  const Colour sail = Pale(random);
  Part hull =
      Polygon({{-1, 0.42f}, {1, 0.42f}, {stern, 0.95f}, {-stern * 0.9f, 0.95f}},
              colour);
  Part band = Rectangle({-0.94f, 0.47f}, {0.94f, 0.55f}, Pale(random));
  Part main = Polygon({{mast + 0.06f, -0.92f},
                       {mast + random->Within(0.65f, 0.85f), 0.3f},
                       {mast + 0.06f, 0.3f}},
                      sail);
  if (random->Coin())
    main = With(main, Pattern::kStripes, colour, random->Within(0.15f, 0.3f));
  Part fore = Polygon({{mast - 0.06f, -0.7f},
                       {mast - random->Within(0.5f, 0.8f), 0.3f},
                       {mast - 0.06f, 0.3f}},
                      sail * 0.9f);
  return {Line({mast, 0.45f}, {mast, -1}, 0.06f, kBark), main, fore,
          Round(hull, 0.5f), band};
}

Parts Car(const Colour& colour, Random* random) {
  const float roof = random->Within(-0.42f, -0.3f);
  const float front = random->Within(0.3f, 0.5f);
  Part cabin = Polygon({{-0.72f, 0.02f},
                        {-0.5f, roof - 0.1f},
                        {front - 0.15f, roof - 0.1f},
                        {front + 0.2f, 0.02f}},
                       colour * 0.92f);
  cabin.border = 0.04f;
  Part body = Rectangle({-0.92f, 0.04f}, {0.92f, 0.36f}, colour);
  body.border = 0.08f;
  const Colour glass = kGlass * random->Within(0.7f, 1.1f);
  Part rear = Polygon(
      {{-0.58f, 0}, {-0.42f, roof}, {-0.12f, roof}, {-0.12f, 0}}, glass);
  Part fore = Polygon(
      {{-0.03f, 0}, {-0.03f, roof}, {front - 0.2f, roof}, {front + 0.07f, 0}},
      glass);
  Parts parts = {cabin,
                 Round(body, 0.5f),
                 rear,
                 fore,
                 Ellipse({0.95f, 0.14f}, {0.06f, 0.08f}, {250, 240, 190}),
                 Line({-0.08f, 0.3f}, {-0.08f, 0.05f}, 0.02f, colour * 0.6f)};
  const float wheel = random->Within(0.21f, 0.27f);
  for (const float x : {-0.52f, 0.54f}) {
    parts.push_back(Ellipse({x, 0.44f}, {wheel, wheel}, kDark));
    parts.push_back(
        Ellipse({x, 0.44f}, {wheel * 0.5f, wheel * 0.5f}, {176, 178, 182}));
  }
  return parts;
}

Parts Cup(const Colour& colour, Random* random) {
  const float foot = random->Within(0.42f, 0.6f);
  const float top = random->Within(-0.7f, -0.55f);
  Part handle = Ellipse({0.62f, 0.1f}, {0.36f, 0.42f}, colour * 0.85f);
  handle.hollow = 0.14f;
  Part body = Polygon(
      {{-0.66f, top}, {0.66f, top}, {foot, 0.8f}, {-foot, 0.8f}}, colour);
  body.border = 0.03f;
  const int kind = random->Below(3);
  if (kind == 0)
    body = With(body, Pattern::kStripes, Pale(random), 0.22f);
  else if (kind == 1)
    body = With(body, Pattern::kSpots, Pale(random), 0.4f);
  Part rim =
      Ellipse({0, top}, {0.69f, 0.17f}, colour.To({255, 255, 255}, 0.3f));
  Part drink = Ellipse({0, top + 0.03f}, {0.58f, 0.11f}, {70, 44, 28});
  return {handle, Round(body, 0.9f), rim, drink};
}

Parts Fish(const Colour& colour, Random* random) {
  const float thick = random->Within(0.4f, 0.55f);
  const float tail = random->Within(0.35f, 0.5f);
  const Colour fins = colour * 0.75f;
  Part body = Ellipse({-0.15f, 0}, {0.8f, thick}, colour);
  const Colour second = Pale(random);
  const int kind = random->Below(3);
  body = kind == 0   ? With(body, Pattern::kStripes, second, 0.2f)
         : kind == 1 ? With(body, Pattern::kMottled, second, 0.3f)
                     : With(body, Pattern::kSpots, second, 0.2f);
  return {
      Polygon({{0.5f, 0}, {1.05f, -tail}, {0.92f, 0}, {1.05f, tail}}, fins),
      Polygon({{-0.35f, -thick * 0.8f},
               {0.15f, -thick - 0.28f},
               {0.35f, -thick * 0.6f}},
              fins),
      Polygon(
          {{-0.2f, thick * 0.8f}, {0.15f, thick + 0.22f}, {0.2f, thick * 0.7f}},
          fins),
      Round(body, 0.8f),
      Ellipse({-0.66f, -0.1f}, {0.1f, 0.1f}, {245, 245, 240}),
      Ellipse({-0.68f, -0.1f}, {0.05f, 0.05f}, kDark),
      Line({-0.92f, 0.12f}, {-0.76f, 0.14f}, 0.03f, fins * 0.6f)};
}

Parts Flower(const Colour& colour, Random* random) {
  const Colour green = Green(random);
  const Point heart = {random->Within(-0.1f, 0.1f), -0.35f};
  Parts parts = {Line({0, 1}, heart, 0.09f, green)};
  for (const float side : {-1.0f, 1.0f}) {
    Part leaf = Ellipse({side * 0.3f, 0.6f + side * 0.1f}, {0.32f, 0.12f},
                        green * 0.85f);
    leaf.turn = side * -0.09f;
    parts.push_back(Round(leaf, 0.4f));
  }
  const int petals = 5 + random->Below(5);
  const float first = random->Within(0, 1);
  const float width = random->Within(0.16f, 0.22f);
  for (int i = 0; i < petals; ++i) {
    const float turn =
        first + static_cast<float>(i) / static_cast<float>(petals);
    Part petal = Ellipse({heart.x + 0.36f * CosineOfTurns(turn),
                          heart.y + 0.36f * SineOfTurns(turn)},
                         {0.29f, width}, colour * (i % 2 == 0 ? 1.0f : 0.88f));
    petal.turn = turn;
    parts.push_back(Round(petal, 0.4f));
  }
  parts.push_back(Round(With(Ellipse(heart, {0.2f, 0.2f}, {226, 178, 42}),
                             Pattern::kSpots, {120, 78, 24}, 0.08f),
                        0.6f));
  return parts;
}

Parts House(const Colour& colour, Random* random) {
  const float eaves = random->Within(-0.2f, 0),
              half = random->Within(0.7f, 0.9f);
  const float lit = random->Within(0.75f, 1);
  const Colour wall = Pale(random) * lit;
  const float door = random->Within(-0.15f, 0.15f);
  Part roof = Polygon({{-half - 0.16f, eaves},
                       {random->Within(-0.2f, 0.2f), -1},
                       {half + 0.16f, eaves}},
                      colour);
  roof = With(roof, Pattern::kStripes, colour * 0.82f, 0.1f);
  const float chimney = random->Coin() ? 0.42f : -0.56f;
  Parts parts = {
      Rectangle({chimney, -0.92f}, {chimney + 0.18f, eaves}, {140, 82, 68}),
      With(Rectangle({-half, eaves - 0.02f}, {half, 0.9f}, wall),
           Pattern::kMottled, wall * 0.88f, 1),
      roof, Rectangle({door - 0.14f, 0.34f}, {door + 0.14f, 0.9f}, kBark)};
  for (const float side : {-1.0f, 1.0f}) {
    const float x = door + side * 0.44f;
    if (x < 0.2f - half || x > half - 0.2f) continue;
    parts.push_back(
        Rectangle({x - 0.16f, 0.22f}, {x + 0.16f, 0.56f}, {240, 240, 235}));
    parts.push_back(
        Rectangle({x - 0.12f, 0.26f}, {x + 0.12f, 0.52f}, kGlass * 0.7f));
    parts.push_back(Line({x, 0.26f}, {x, 0.52f}, 0.03f, {240, 240, 235}));
  }
  return parts;
}

Parts Mushroom(const Colour& colour, Random* random) {
  const float high = random->Within(0.65f, 0.9f), rim = 0.1f;
  const float foot = random->Within(0.2f, 0.32f);
  const Colour pale = {236, 226, 204};
  Part stem =
      Polygon({{-0.17f, 0}, {0.17f, 0}, {foot, 0.95f}, {-foot, 0.95f}}, pale);
  stem.border = 0.04f;
  stem = With(stem, Pattern::kMottled, pale * 0.8f, 1);
  Part cap = Ellipse({0, rim}, {1, high}, colour);
  cap = With(cap, Pattern::kSpots, pale, random->Within(0.28f, 0.42f));
  cap.below = rim;
  Part gills = Ellipse({0, rim}, {0.98f, 0.14f}, pale * 0.72f);
  gills = With(gills, Pattern::kStripes, pale * 0.58f, 0.06f);
  return {Round(stem, 0.8f), gills, Round(cap, 0.9f)};
}

Parts Tree(const Colour& colour, Random* random) {
  const Colour leaves = colour.To(Green(random), 0.45f);
  Part trunk =
      Polygon({{-0.1f, -0.2f}, {0.1f, -0.2f}, {0.16f, 1}, {-0.16f, 1}}, kBark);
  Parts parts = {Round(With(trunk, Pattern::kMottled, kBark * 0.6f, 1), 0.7f)};
  if (random->Below(3) == 0) {  // a conifer
    for (int i = 3; i-- > 0;) {
      const float top = -1 + 0.42f * static_cast<float>(i);
      const float half = 0.42f + 0.16f * static_cast<float>(i);
      parts.push_back(
          With(Polygon({{0, top}, {half, top + 0.72f}, {-half, top + 0.72f}},
                       leaves * (1 - 0.08f * static_cast<float>(i))),
               Pattern::kMottled, leaves * 0.55f, 1));
    }
    return parts;
  }
  for (int i = 0; i < 9; ++i) {
    const float turn =
        static_cast<float>(i) / 8 + random->Within(-0.03f, 0.03f);
    const float far = i == 8 ? 0.0f : 0.45f;
    const float radius = random->Within(0.3f, 0.42f);
    Part crown = Ellipse({far * CosineOfTurns(turn) * 1.2f,
                          -0.38f + far * SineOfTurns(turn) * 0.75f},
                         {radius, radius}, leaves);
    parts.push_back(
        Round(With(crown, Pattern::kMottled, leaves * 0.5f, 1), 0.6f));
  }
  return parts;
}

Parts Umbrella(const Colour& colour, Random* random) {
  const float rim = random->Within(-0.1f, 0.05f);
  const float high = random->Within(0.65f, 0.85f);
  Part cover = Ellipse({0, rim}, {1, high}, colour);
  cover = With(cover, Pattern::kWedges,
               random->Coin() ? colour * 0.72f : Pale(random), 3);
  cover.below = rim;
  Part hook = Ellipse({-0.13f, 0.84f}, {0.16f, 0.16f}, kBark);
  hook.hollow = 0.07f;
  hook.above = 0.84f;
  Parts parts = {Line({0, rim}, {0, 0.84f}, 0.06f, {90, 90, 96}), hook,
                 Round(cover, 0.7f),
                 Line({0, rim - high - 0.1f}, {0, rim - high}, 0.05f, kDark)};
  // The rim hangs in bows between the ribs.
  for (int i = 0; i < 6; ++i) {
    Part bow =
        Ellipse({-0.833f + 0.333f * static_cast<float>(i), rim},
                {0.167f, 0.09f}, i % 2 == 0 ? cover.colour : cover.second);
    parts.push_back(bow);
  }
  return parts;
}

}  // namespace

Parts PartsOf(int thing, const Colour& colour, Random* random) {
  static constexpr Parts (*kDraw[])(const Colour&, Random*) = {
      Ball, Boat, Car, Cup, Fish, Flower, House, Mushroom, Tree, Umbrella};
  static_assert(std::size(kDraw) == kThings.size());
  return kDraw[thing](colour, random);
}

}  // namespace leat::testing
