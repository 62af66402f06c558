// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/latency.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace leat::client {
namespace {

// Walks to a quantile that is not kept, but has the same rank.
Duration Walked(const LatencyHistogram& histogram, double q) {
  return histogram.Quantile(std::nextafter(q, 0));
}

TEST(LatencyHistogram, KeptQuantilesAreThoseOfAWalk) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    LatencyHistogram histogram;
    EXPECT_EQ(histogram.Quantile(0.5), Duration(0));
    for (int i = 0; i < 2000; ++i) {
      // From nanoseconds to hours, with a drift that quantiles follow.
      const double exponent =
          static_cast<double>(random() % 430) / 10 * (i < 1000 ? 1 : 0.3);
      histogram.Add(Duration(static_cast<int64_t>(std::exp2(exponent))));
      if (random() % 500 == 0) histogram.Fade();
      ASSERT_EQ(histogram.Quantile(0.5), Walked(histogram, 0.5)) << i;
      ASSERT_EQ(histogram.Quantile(0.95), Walked(histogram, 0.95)) << i;
    }
  }
}

TEST(LatencyHistogram, WhatFadesToNothingIsEmpty) {
  LatencyHistogram histogram;
  histogram.Add(std::chrono::milliseconds(3));
  histogram.Fade();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Quantile(0.95), Duration(0));
  histogram.Add(std::chrono::microseconds(7));
  EXPECT_GE(histogram.Quantile(0.5), std::chrono::microseconds(7));
  EXPECT_LT(histogram.Quantile(0.5), std::chrono::microseconds(8));
}

}  // namespace
}  // namespace leat::client
