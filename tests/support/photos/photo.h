// SPDX-License-Identifier: Apache-2.0
//
// Draws photos with the statistics of those that people keep: sizes about 500 ×
// 375, 60 to 200 KB, 1/f noise and grain, 4:4:4 and 4:2:0, turned cameras. Each
// shows one thing before one backdrop. Things have usual colours and places,
// but no colour or place belongs to only one thing; size, brightness, quality
// and coding are drawn without regard to the class.
//
// The same set and number give the same photo on every machine, and a photo
// does not depend on how many others are drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/jpeg_maker.h"

namespace leat::testing {

struct PhotoSet {
  int classes = 10;    // 1 … kMaxClasses
  int max_side = 640;  // the longest side of the largest photo, 16 … 8192
  uint32_t seed = 1;
};

inline constexpr int kMaxClasses = 1000;

// Returns "ball". More than ten classes differ by colour too, "ball-red", and
// more than a hundred also by the backdrop, "ball-red-grass".
std::string ClassName(const PhotoSet& set, int index);

struct Photo {
  // The photo as people see it: 3 bytes per pixel.
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
  // The photo as stored: its pixels are turned by spec.orientation.
  JpegSpec spec;
};

// Photo `number` shows class number % set.classes. REQUIRES: number >= 0.
Photo DrawPhoto(const PhotoSet& set, int number);

// Returns the file's bytes.
std::string EncodePhoto(const Photo& photo);

}  // namespace leat::testing
