// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of standardize: the same bits of every compiler and device.
//
// Sums are double, of a group's elements in their order in memory: the mean
// first, then the squares of the distances from it.
#pragma once

#include <cmath>

#include "core/tensor/pointwise.h"

namespace leat::worker {

LEAT_PIXEL double AddSquare(double sum, float x, double mean) {
  const double distance = static_cast<double>(x) - mean;
  const double square = distance * distance;
  return sum + square;
}

// The variance of `count` elements.
LEAT_PIXEL double VarianceOf(double squares, double count, double ddof) {
  const double freedom = count - ddof;
  return squares / (freedom > 0 ? freedom : 0);
}

// What a distance from the mean is multiplied by; 0 where there is no
// deviation.
LEAT_PIXEL float StandardFactor(double variance, double epsilon, double scale) {
  const double deviation = sqrt(variance + epsilon);
  const bool finite = deviation <= 0x1.fffffffffffffp1023;
  return deviation > 0 && finite ? static_cast<float>(scale / deviation) : 0;
}

}  // namespace leat::worker
