// SPDX-License-Identifier: Apache-2.0
//
// The randomness of drawn photos: numbers from a counter, and textures that
// repeat. Every value is computed from integers and by single additions,
// multiplications, divisions and square roots, so that each compiler and each
// flag gives the same photo. The C library's sines and powers would not.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace leat::testing {

// Returns a well mixed number for each argument.
constexpr uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// The random numbers of one photo.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}

  // Returns 0 … below - 1.
  int Below(int below) {
    return static_cast<int>((Next() >> 32) * static_cast<uint64_t>(below) >>
                            32);
  }
  float Within(float low, float high) {
    return low + (high - low) * (static_cast<float>(Next() >> 40) * 0x1p-24f);
  }
  bool Coin() { return Below(2) == 1; }

 private:
  uint64_t Next() { return Mix(state_++); }

  uint64_t state_;
};

// Returns the sine of a fraction of a full turn, to four digits.
float SineOfTurns(float turns);
inline float CosineOfTurns(float turns) { return SineOfTurns(turns + 0.25f); }

// A picture of kSide × kSide values that repeats without an edge.
class Texture {
 public:
  static constexpr int kSide = 256;
  explicit Texture(std::vector<float> values) : values_(std::move(values)) {}

  // Interpolates between the four nearest values.
  float At(float x, float y) const {
    const int left = Floor(x), top = Floor(y);
    const float dx = x - static_cast<float>(left);
    const float dy = y - static_cast<float>(top);
    const float* upper = &values_[(top & kMask) * kSide];
    const float* lower = &values_[((top + 1) & kMask) * kSide];
    const int l = left & kMask, r = (left + 1) & kMask;
    const float above = upper[l] + (upper[r] - upper[l]) * dx;
    const float below = lower[l] + (lower[r] - lower[l]) * dx;
    return above + (below - above) * dy;
  }
  float Nearest(float x, float y) const {
    return values_[(Floor(y) & kMask) * kSide + (Floor(x) & kMask)];
  }

  static int Floor(float value) {
    const int whole = static_cast<int>(value);
    return whole - (static_cast<float>(whole) > value ? 1 : 0);
  }

 private:
  static constexpr int kMask = kSide - 1;
  std::vector<float> values_;
};

// The textures that all photos sample, made once.
struct Textures {
  Texture clouds;  // 1/f noise, about -1 … 1
  Texture grit;    // only the finest lattice
  Texture gaps;    // cells: 0 at the border of two, about 1 in the middle
  Texture cell;    // cells: one value of 0 … 1 for each
  static const Textures& Get();
};

}  // namespace leat::testing
