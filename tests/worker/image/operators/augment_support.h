// SPDX-License-Identifier: Apache-2.0
//
// Images for the tests of automatic augmentation, and one operation of it.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "tests/worker/image/operators/values_support.h"

namespace leat::worker::testing {

inline const Shape kAugmentShapes[] = {{1, 1, 3},  {1, 1, 1}, {2, 2, 3},
                                       {1, 7, 1},  {5, 1, 3}, {9, 4, 1},
                                       {13, 37, 3}};

// Values in a part of the range, so that contrasts can spread them.
inline Array RandomImage(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  const int low = static_cast<int>(random() % 100);
  const int range = 1 + static_cast<int>(random() % 155);
  std::vector<uint8_t> values(shape[0] * shape[1] * shape[2]);
  for (uint8_t& value : values)
    value = static_cast<uint8_t>(low + static_cast<int>(random() % range));
  return Array::Of<uint8_t>(shape, values);
}

inline Array Augmented(const char* operation, double magnitude,
                       const Array& image, Args more = {}) {
  more["operation"] = Text(operation);
  more["magnitude"] = Value(magnitude);
  return Computed("augment", std::move(more), {image});
}

}  // namespace leat::worker::testing
