// SPDX-License-Identifier: Apache-2.0
#include "worker/image/formulas/exact_math.h"

#include <cstdint>

namespace leat::worker {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kPi = 0x1.921fb54442d18p+1;

int64_t Nearest(double x) {
  return static_cast<int64_t>(x < 0 ? x - 0.5 : x + 0.5);
}

}  // namespace

// x = m × 2^k, m in [0.7, 1.42); log m = 2 artanh((m - 1) / (m + 1)).
double ExactLog(double x) {
  int k = 0;
  for (; x >= 1.4142135623730951; ++k) x *= 0.5;
  for (; x < 0.7071067811865476; --k) x *= 2;
  const double s = (x - 1) / (x + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 29; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return k * kLn2 + 2 * s * sum;
}

// Reduces x to [-1/2, 1/2] and sums Taylor's series.
double ExactSinPi(double x) {
  const int64_t k = Nearest(x);
  const double r = (x - static_cast<double>(k)) * kPi;
  const double square = r * r;
  double sum = 1;
  for (int n = 25; n >= 3; n -= 2) sum = 1 - sum * square / (n * (n - 1));
  return (k & 1 ? -1 : 1) * r * sum;
}

double ExactSinc(double x) { return x == 0 ? 1 : ExactSinPi(x) / (x * kPi); }

}  // namespace leat::worker
