// SPDX-License-Identifier: Apache-2.0
//
// exp, log and sin(πx) computed with +, -, ×, / alone. The C library's results
// differ in the last bit between versions and between processors; these never
// do. Errors are a few units in the last place, which no caller notices.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// x = k ln 2 + r, |r| ≤ 0.35; Taylor's series of e^r (Horner), times 2^k. Runs
// on every device. REQUIRES: |x| ≤ 60.
LEAT_PIXEL double ExactExp(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const double quotient = x / kLn2;
  const auto k =
      static_cast<int64_t>(quotient < 0 ? quotient - 0.5 : quotient + 0.5);
  const double r = x - static_cast<double>(k) * kLn2;
  double sum = 1;
  for (int n = 17; n >= 1; --n) sum = 1 + sum * r / n;
  for (int64_t i = 0; i < k; ++i) sum *= 2;
  for (int64_t i = 0; i > k; --i) sum *= 0.5;
  return sum;
}
// REQUIRES: 1e-18 ≤ x ≤ 1e9.
double ExactLog(double x);
// sin(πx). REQUIRES: |x| ≤ 1e6.
double ExactSinPi(double x);
// sin(πx) / (πx), and 1 at 0. REQUIRES: |x| ≤ 1e6.
double ExactSinc(double x);

}  // namespace leat::worker
