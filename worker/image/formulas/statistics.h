// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of standardize: the same bits with every compiler and device.
//
// Sums are double: first the sum for the mean, then that of the squared
// distances from it. A group's elements are added in their order in memory, in
// runs of kStandardRun; then the runs' sums are added in the same order. So
// runs can be added in parallel, and a sum of many elements loses less.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

inline constexpr uint32_t kStandardRun = 1024;

// The sum of a group whose elements are added one by one.
struct StandardSum {
  double runs = 0, run = 0;
  uint32_t elements = 0;  // in the current run

  LEAT_PIXEL void Add(double x) {
    run += x;
    if (++elements < kStandardRun) return;
    runs += run;
    run = 0;
    elements = 0;
  }
  LEAT_PIXEL double Of() const { return elements == 0 ? runs : runs + run; }
};

LEAT_PIXEL double SquareOf(float x, double mean) {
  const double distance = static_cast<double>(x) - mean;
  return distance * distance;
}

// The variance of `count` elements.
LEAT_PIXEL double VarianceOf(double squares, double count, double ddof) {
  const double freedom = count - ddof;
  return squares / (freedom > 0 ? freedom : 0);
}

// The factor applied to each distance from the mean; 0 if there is no
// deviation.
LEAT_PIXEL float StandardFactor(double variance, double epsilon, double scale) {
  const double deviation = sqrt(variance + epsilon);
  const bool finite = deviation <= 0x1.fffffffffffffp1023;
  return deviation > 0 && finite ? static_cast<float>(scale / deviation) : 0;
}

}  // namespace leat::worker
