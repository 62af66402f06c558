// SPDX-License-Identifier: Apache-2.0
//
// 1/f noise is a sum of random lattices: each has half the cell and half the
// height of the previous one, as the spectrum of most photos has. Cells are
// Voronoi's: points are scattered, one per square, and each place belongs to
// the nearest.
#include "tests/support/photos/noise.h"

#include <algorithm>
#include <cmath>

namespace leat::testing {
namespace {

constexpr int kSide = Texture::kSide;

// Returns a value 0 … 1 for each point of a lattice.
float Scattered(int x, int y, int salt) {
  const uint64_t key = static_cast<uint64_t>(salt) << 40 |
                       static_cast<uint64_t>(y) << 20 |
                       static_cast<uint64_t>(x);
  return static_cast<float>(Mix(key) >> 40) * 0x1p-24f;
}

Texture Noise(int coarsest, float fall) {
  std::vector<float> values(kSide * kSide);
  float height = 1;
  for (int cell = coarsest; cell >= 1; cell /= 2, height *= fall) {
    const int cells = kSide / cell;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const auto corner = [&](int dx, int dy) {
          return Scattered((x / cell + dx) % cells, (y / cell + dy) % cells,
                           cell) *
                     2 -
                 1;
        };
        const auto eased = [&](int within) {
          const float t = static_cast<float>(within) / static_cast<float>(cell);
          return t * t * (3 - 2 * t);
        };
        const float dx = eased(x % cell), dy = eased(y % cell);
        const float above = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * dx;
        const float below = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * dx;
        values[y * kSide + x] += height * (above + (below - above) * dy);
      }
  }
  return Texture(std::move(values));
}

struct Voronoi {
  std::vector<float> gaps, cell;
};

Voronoi Cells() {
  constexpr int kCell = 32, kCells = kSide / kCell;
  Voronoi made{std::vector<float>(kSide * kSide),
               std::vector<float>(kSide * kSide)};
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      float nearest = 1e9f, second = 1e9f, owner = 0;
      for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
          const int i = x / kCell + dx, j = y / kCell + dy;
          const int wi = (i + kCells) % kCells, wj = (j + kCells) % kCells;
          const float px =
              (static_cast<float>(i) + Scattered(wi, wj, 1001)) * kCell -
              static_cast<float>(x);
          const float py =
              (static_cast<float>(j) + Scattered(wi, wj, 1002)) * kCell -
              static_cast<float>(y);
          const float far = std::sqrt(px * px + py * py);
          if (far < nearest) {
            second = nearest;
            nearest = far;
            owner = Scattered(wi, wj, 1003);
          } else {
            second = std::min(second, far);
          }
        }
      made.gaps[y * kSide + x] = (second - nearest) / kCell;
      made.cell[y * kSide + x] = owner;
    }
  return made;
}

}  // namespace

float SineOfTurns(float turns) {
  // A parabola for each half turn, then Capens' correction.
  const float t = turns - static_cast<float>(Texture::Floor(turns + 0.5f));
  const float wave = 8 * t - 16 * t * std::abs(t);
  return 0.225f * (wave * std::abs(wave) - wave) + wave;
}

const Textures& Textures::Get() {
  static const Textures* const kMade = [] {
    Voronoi cells = Cells();
    return new Textures{Noise(64, 0.68f), Noise(2, 0.9f),
                        Texture(std::move(cells.gaps)),
                        Texture(std::move(cells.cell))};
  }();
  return *kMade;
}

}  // namespace leat::testing
