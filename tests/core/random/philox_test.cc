// SPDX-License-Identifier: Apache-2.0
#include "core/random/philox.h"

#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/golden.h"

namespace leat {
namespace {

TEST(Philox, GivesThePublishedBlocks) {
  for (const auto& line : GoldenLines("philox.txt")) {
    ASSERT_EQ(line.size(), 10u);
    std::array<uint32_t, 10> w;
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<uint32_t>(std::stoul(line[i], nullptr, 16));
    const std::array<uint32_t, 4> want = {w[6], w[7], w[8], w[9]};
    EXPECT_EQ(Philox4x32({w[0], w[1], w[2], w[3]}, {w[4], w[5]}), want);
  }
}

TEST(SampleRng, IsGolden) {
  for (const auto& line : GoldenLines("draws.txt")) {
    ASSERT_EQ(line.size(), 10u);
    SampleRng rng(std::stoull(line[0]), std::stoull(line[1]),
                  std::stoull(line[2]),
                  static_cast<uint32_t>(std::stoul(line[3])));
    for (size_t i = 4; i < line.size(); ++i)
      EXPECT_EQ(rng.NextU32(), std::stoul(line[i]));
  }
}

TEST(SampleRng, EveryPartOfTheKeyMatters) {
  std::set<uint64_t> firsts;
  int streams = 0;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull})
    for (uint64_t epoch : {0, 1, 2})
      for (uint64_t sample : {0ull, 1ull, 1ull << 32, 1ull << 47})
        for (uint32_t op : {0u, 1u, 999u}) {
          SampleRng rng(seed, epoch, sample, op);
          const uint64_t high = rng.NextU32();
          firsts.insert(high << 32 | rng.NextU32());
          ++streams;
        }
  EXPECT_EQ(firsts.size(), static_cast<size_t>(streams));
}

TEST(SampleRng, FloatsAreUniform) {
  constexpr int kDraws = 100'000, kBins = 64;
  std::vector<int> floats(kBins), doubles(kBins);
  for (int i = 0; i < kDraws; ++i) {
    SampleRng rng(3, 1, static_cast<uint64_t>(i), 2);
    const float f = rng.NextFloat();
    const double d = rng.NextDouble();
    ASSERT_TRUE(f >= 0 && f < 1 && d >= 0 && d < 1);
    ++floats[static_cast<size_t>(f * kBins)];
    ++doubles[static_cast<size_t>(d * kBins)];
  }
  for (const auto& bins : {floats, doubles}) {
    double chi_square = 0;
    for (int count : bins)
      chi_square += std::pow(count - double{kDraws} / kBins, 2) /
                    (double{kDraws} / kBins);
    EXPECT_NEAR(chi_square, kBins - 1, 4 * std::sqrt(2.0 * (kBins - 1)));
  }
}

}  // namespace
}  // namespace leat
