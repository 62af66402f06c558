// SPDX-License-Identifier: Apache-2.0
//
// A digit consists of a few straight strokes between points of a unit square,
// distorted by a random linear map, and painted with a soft pen: white within
// its radius, gray for half a pixel around it. A tile has the smooth colours of
// its class, weakened, under smooth random colours and noise.
#include "tests/support/drawn_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace leat::testing {
namespace {

constexpr int kDigitSide = 28, kTileSide = 32, kChannels = 3;

// Random numbers that depend only on the seed, on any machine (splitmix64).
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // A number from `low` to `high`.
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

// x to the right, y downwards; the unit square holds the digit.
const std::array<std::vector<Stroke>, 10>& Strokes() {
  static const std::array<std::vector<Stroke>, 10> strokes = {{
      {{{.5, 0},
        {.2, .15},
        {.1, .5},
        {.2, .85},
        {.5, 1},
        {.8, .85},
        {.9, .5},
        {.8, .15},
        {.5, 0}}},
      {{{.3, .2}, {.55, 0}, {.55, 1}}},
      {{{.1, .2}, {.3, 0}, {.7, 0}, {.85, .25}, {.7, .5}, {.1, 1}, {.9, 1}}},
      {{{.1, .1}, {.5, 0}, {.8, .2}, {.5, .48}, {.85, .75}, {.5, 1}, {.1, .9}}},
      {{{.6, 0}, {.1, .65}, {.9, .65}}, {{.7, .3}, {.7, 1}}},
      {{{.85, 0}, {.2, 0}, {.15, .45}, {.6, .4}, {.85, .7}, {.6, 1}, {.1, .9}}},
      {{{.7, 0},
        {.3, .3},
        {.1, .7},
        {.4, 1},
        {.8, .9},
        {.8, .6},
        {.45, .5},
        {.15, .7}}},
      {{{.1, 0}, {.9, 0}, {.4, 1}}},
      {{{.5, .48},
        {.15, .25},
        {.5, 0},
        {.85, .25},
        {.5, .48},
        {.1, .75},
        {.5, 1},
        {.9, .75},
        {.5, .48}}},
      {{{.85, .3},
        {.5, .5},
        {.2, .3},
        {.45, 0},
        {.8, .1},
        {.85, .3},
        {.75, 1}}},
  }};
  return strokes;
}

double SquaredDistance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length = dx * dx + dy * dy;
  double t = length == 0 ? 0 : ((p.x - a.x) * dx + (p.y - a.y) * dy) / length;
  t = std::clamp(t, 0.0, 1.0);
  const double x = p.x - a.x - t * dx, y = p.y - a.y - t * dy;
  return x * x + y * y;
}

void Paint(Point a, Point b, double radius, uint8_t* pixels) {
  const auto inside = [](double at) {
    return std::clamp(static_cast<int>(at), 0, kDigitSide - 1);
  };
  const double reach = radius + 1;
  const int x_end = inside(std::max(a.x, b.x) + reach);
  const int y_end = inside(std::max(a.y, b.y) + reach);
  for (int y = inside(std::min(a.y, b.y) - reach); y <= y_end; ++y)
    for (int x = inside(std::min(a.x, b.x) - reach); x <= x_end; ++x) {
      const double distance =
          std::sqrt(SquaredDistance({x + .5, y + .5}, a, b));
      const double white = std::clamp(radius + .5 - distance, 0.0, 1.0);
      uint8_t& pixel = pixels[y * kDigitSide + x];
      pixel = std::max(pixel, static_cast<uint8_t>(white * 255));
    }
}

void DrawDigit(int digit, Draws& draws, uint8_t* pixels) {
  const double width = draws.Between(10, 14), height = draws.Between(16, 20);
  const double slant = draws.Between(-.2, .2), turn = draws.Between(-.1, .1);
  const double x = kDigitSide / 2. + draws.Between(-1, 1);
  const double y = kDigitSide / 2. + draws.Between(-1, 1);
  const double radius = draws.Between(1, 1.8);
  const auto placed = [&](Point p) {
    const double across = (p.x - .5) * width, down = (p.y - .5) * height;
    return Point{x + across - (slant + turn) * down, y + turn * across + down};
  };
  for (const Stroke& stroke : Strokes()[digit])
    for (size_t i = 1; i < stroke.size(); ++i)
      Paint(placed(stroke[i - 1]), placed(stroke[i]), radius, pixels);
}

std::string IdxHeader(int axes, std::initializer_list<uint32_t> sizes) {
  std::string header("\0\0\x08", 3);  // unsigned bytes
  header.push_back(static_cast<char>(axes));
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<char>(size >> shift));
  return header;
}

// Colours that change slowly: 4 × 4 × 3 knots from -1 to 1, interpolated
// linearly.
class Smooth {
 public:
  explicit Smooth(Draws& draws) {
    for (float& knot : knots_) knot = static_cast<float>(draws.Between(-1, 1));
  }
  float At(int c, int y, int x) const {
    const float down = static_cast<float>(y * (kKnots - 1)) / kTileSide;
    const float across = static_cast<float>(x * (kKnots - 1)) / kTileSide;
    const int row = static_cast<int>(down), column = static_cast<int>(across);
    const float* corner = &knots_[(c * kKnots + row) * kKnots + column];
    const float v = down - static_cast<float>(row);
    const float u = across - static_cast<float>(column);
    return (corner[0] * (1 - u) + corner[1] * u) * (1 - v) +
           (corner[kKnots] * (1 - u) + corner[kKnots + 1] * u) * v;
  }

 private:
  static constexpr int kKnots = 4;
  std::array<float, kChannels * kKnots * kKnots> knots_;
};

}  // namespace

IdxPair DrawDigits(uint32_t count, uint32_t seed) {
  Draws draws(seed);
  IdxPair files{IdxHeader(3, {count, kDigitSide, kDigitSide}),
                IdxHeader(1, {count})};
  std::array<uint8_t, kDigitSide * kDigitSide> pixels;
  for (uint32_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>(draws.Next() % 10);
    pixels.fill(0);
    DrawDigit(digit, draws, pixels.data());
    files.images.append(reinterpret_cast<const char*>(pixels.data()),
                        pixels.size());
    files.labels.push_back(static_cast<char>(digit));
  }
  return files;
}

std::string DrawTiles(uint32_t count, uint32_t seed) {
  Draws of_classes(10), draws(seed);  // every part has the same classes
  std::vector<Smooth> classes;
  for (int i = 0; i < 10; ++i) classes.emplace_back(of_classes);
  std::string records;
  records.reserve(size_t{count} * (1 + kChannels * kTileSide * kTileSide));
  for (uint32_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(draws.Next() % 10);
    const Smooth own(draws);
    records.push_back(static_cast<char>(label));
    uint64_t noise = 0;
    for (int c = 0; c < kChannels; ++c)
      for (int y = 0; y < kTileSide; ++y)
        for (int x = 0; x < kTileSide; ++x) {
          if (x % 8 == 0) noise = draws.Next();
          const float grain =
              static_cast<float>(noise >> (x % 8 * 8) & 63) - 32;
          const float value = 128 + 24 * classes[label].At(c, y, x) +
                              70 * own.At(c, y, x) + grain;
          records.push_back(static_cast<char>(
              static_cast<uint8_t>(std::clamp(value, 0.f, 255.f))));
        }
  }
  return records;
}

}  // namespace leat::testing
