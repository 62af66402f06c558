// SPDX-License-Identifier: Apache-2.0
#include "tests/support/photos/backdrop.h"

#include <algorithm>
#include <cmath>

namespace leat::testing {
namespace {

constexpr int kGrass = 0, kSand = 1, kSky = 2, kBricks = 3, kWood = 4,
              kWater = 5, kCloth = 6, kLeaves = 7, kStones = 8, kSnow = 9;

float Fraction(float value) {
  return value - static_cast<float>(Texture::Floor(value));
}

float Hash(int x, int y) {
  return static_cast<float>(
             Mix(static_cast<uint64_t>(x) << 32 ^ static_cast<uint32_t>(y)) >>
             40) *
         0x1p-24f;
}

}  // namespace

Backdrop::Backdrop(int kind, Random* random)
    : kind_(kind),
      textures_(Textures::Get()),
      left_(random->Within(0, Texture::kSide)),
      top_(random->Within(0, Texture::kSide)),
      scale_(random->Within(0.75f, 1.4f)),
      horizon_(random->Within(-0.75f, 0.1f)),
      sine_(SineOfTurns(random->Within(-0.03f, 0.03f))),
      cosine_(std::sqrt(1 - sine_ * sine_)) {
  const auto pick = [&](float hue, float saturation, float value) {
    return ColourOf({hue + random->Within(-0.03f, 0.03f),
                     saturation * random->Within(0.75f, 1.1f),
                     value * random->Within(0.85f, 1.1f)});
  };
  // The colour of the sky, or of whatever is furthest behind.
  third_ = pick(0.58f, random->Within(0.05f, 0.5f), 0.85f);
  switch (kind) {
    case kGrass:
      first_ = pick(0.25f, 0.55f, 0.5f);
      second_ = pick(0.2f, 0.5f, 0.26f);
      break;
    case kSand:
      first_ = pick(0.1f, 0.32f, 0.82f);
      second_ = pick(0.08f, 0.4f, 0.6f);
      break;
    case kSky:
      first_ = pick(0.6f, 0.6f, 0.75f);
      second_ = pick(0.6f, 0.08f, 0.92f);
      break;
    case kBricks:
      first_ = pick(0.03f, 0.45f, 0.55f);
      second_ = pick(0.08f, 0.12f, 0.7f);
      break;
    case kWood:
      first_ = pick(0.08f, 0.5f, 0.62f);
      second_ = pick(0.06f, 0.6f, 0.36f);
      break;
    case kWater:
      first_ = pick(0.53f, 0.5f, 0.45f);
      second_ = pick(0.52f, 0.25f, 0.8f);
      break;
    case kCloth:
      first_ = pick(random->Within(0, 1), 0.3f, 0.6f);
      second_ = pick(random->Within(0, 1), 0.25f, 0.8f);
      break;
    case kLeaves:
      first_ = pick(0.28f, 0.55f, 0.42f);
      second_ = pick(0.24f, 0.5f, 0.18f);
      break;
    case kStones:
      first_ = pick(0.1f, 0.1f, 0.58f);
      second_ = pick(0.1f, 0.15f, 0.22f);
      break;
    case kSnow:
      first_ = pick(0.58f, 0.04f, 0.92f);
      second_ = pick(0.6f, 0.22f, 0.7f);
      third_ = pick(0.58f, 0.12f, 0.72f);
      break;
  }
}

float Backdrop::Noise(float x, float y) const {
  return textures_.clouds.At(left_ + x, top_ + y);
}

Colour Backdrop::Sky(Point at) const {
  const float cloud = Noise(at.x * 45 * scale_, at.y * 80 * scale_);
  const Colour clear = third_.To({236, 240, 244}, (at.y + 1) * 0.35f);
  return clear.To({244, 243, 240}, std::clamp(cloud * 0.7f, 0.0f, 0.8f));
}

// Returns the colour of the ground, finer the farther it is.
Colour Backdrop::Ground(Point at, float depth) const {
  const float near = 0.25f + depth;
  const float along = at.x / near, back = 1.6f / near;
  const float coarse = Noise(along * 40, back * 60);
  const float fine = kind_ == kGrass
                         ? Noise(at.x * 260 * scale_, at.y * 75 * scale_)
                         : Noise(at.x * 170 * scale_, at.y * 190 * scale_);
  const float share = kind_ == kSnow ? 0.35f + coarse * 0.35f + fine * 0.1f
                                     : 0.45f + coarse * 0.3f + fine * 0.5f;
  return first_.To(second_, std::clamp(share, 0.0f, 1.0f));
}

Colour Backdrop::Bricks(Point at) const {
  const float high = 0.2f * scale_, wide = high * 2.6f;
  const int row = Texture::Floor(at.y / high);
  const float x = at.x / wide + ((row & 1) != 0 ? 0.5f : 0.0f);
  const int column = Texture::Floor(x);
  const float dx = Fraction(x) * wide, dy = Fraction(at.y / high) * high;
  const float fine = Noise(at.x * 150, at.y * 150);
  const float edge = std::min({dx, dy, wide - dx, high - dy}) + fine * 0.006f;
  const Colour brick =
      first_ * (0.75f + 0.45f * Hash(row, column) + 0.18f * fine);
  return brick.To(second_ * (0.9f + 0.15f * fine),
                  std::clamp(1.5f - edge * 90, 0.0f, 1.0f));
}

Colour Backdrop::Planks(Point at) const {
  const float wide = 0.42f * scale_;
  const int plank = Texture::Floor(at.y / wide);
  const float shift = Hash(plank, 7) * 200;
  const float bend = Noise(at.x * 14 + shift, at.y * 30);
  const float grain = Noise(at.x * 22 + shift, at.y * 240 + bend * 26);
  const float dy = Fraction(at.y / wide);
  const Colour wood =
      first_.To(second_, std::clamp(0.4f + 0.55f * grain, 0.0f, 1.0f)) *
      (0.8f + 0.3f * Hash(plank, 3));
  return wood * std::clamp(std::min(dy, 1 - dy) * 40 * wide, 0.25f, 1.0f);
}

Colour Backdrop::Water(Point at) const {
  const float near = 0.4f + (at.y - horizon_) * 0.6f;
  const float wave = Noise(at.x * 40 / near, 90 / near) +
                     0.5f * Noise(at.x * 110 * scale_, at.y * 260 * scale_);
  return first_.To(second_, std::clamp(0.35f + wave * 0.5f, 0.0f, 1.0f));
}

Colour Backdrop::Cloth(Point at) const {
  const float bend = Noise(at.x * 20, at.y * 20) * 0.06f;
  const float u = (at.x + bend) * 2.6f / scale_;
  const float v = (at.y - bend) * 2.6f / scale_;
  const float check =
      (Fraction(u) < 0.5f ? 0.5f : 0.0f) + (Fraction(v) < 0.5f ? 0.5f : 0.0f);
  const float weave =
      Noise(at.x * 210, at.y * 60) + Noise(at.x * 60, at.y * 210);
  return first_.To(second_, check) * (0.92f + weave * 0.12f - bend * 2);
}

Colour Backdrop::Cells(Point at, float gap, float bright) const {
  const float bend = Noise(at.x * 60, at.y * 60) * 5;
  const float x = left_ + at.x * 95 * scale_ + bend;
  const float y = top_ + at.y * 120 * scale_ + bend;
  const float rise = std::clamp(textures_.gaps.At(x, y) * gap, 0.0f, 1.0f);
  const float own = textures_.cell.Nearest(x, y);
  const Colour cell = first_ * (1 - bright / 2 + bright * own);
  return second_.To(cell, rise) *
         (1 + 0.22f * Noise(at.x * 190 + own * 99, at.y * 190));
}

Colour Backdrop::At(Point level) const {
  const Point at = {level.x * cosine_ + level.y * sine_,
                    level.y * cosine_ - level.x * sine_};
  switch (kind_) {
    case kSky: {
      const float cloud = Noise(at.x * 50 * scale_, at.y * 70 * scale_) +
                          0.25f * Noise(at.x * 160, at.y * 160);
      return first_.To(second_, std::clamp(0.35f + at.y * 0.25f + cloud * 0.55f,
                                           0.0f, 1.0f));
    }
    case kBricks:
      return Bricks(at);
    case kWood:
      return Planks(at);
    case kCloth:
      return Cloth(at);
    case kLeaves:
      return Cells(at, 2.2f, 0.9f);
    case kStones:
      return Cells(at, 5.0f, 0.6f);
    default:
      break;
  }
  // A horizon, with plants, waves or dunes on it.
  const float skyline =
      horizon_ + (kind_ == kWater || kind_ == kSand
                      ? 0.0f
                      : Noise(at.x * 45, 0) * (kind_ == kSnow ? 0.12f : 0.06f));
  const float depth = at.y - skyline;
  if (depth < 0) return Sky(at);
  if (kind_ == kWater) return Water(at);
  if (kind_ == kSand && depth < 0.12f)
    return third_.To({60, 110, 140}, 0.7f) *
           (1 + 0.2f * Noise(at.x * 50, depth * 400));
  if (depth < 0.03f && kind_ == kGrass) return second_ * 0.7f;
  return Ground(at, depth);
}

}  // namespace leat::testing
