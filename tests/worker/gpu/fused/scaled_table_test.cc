// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/scaled_table.h"

#include <map>
#include <numeric>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

TEST(ScaledAxis, GroupsTheStoredImagesPixels) {
  const ScaledAxis half{.length = 7, .halvings = 1};
  const int64_t expected[] = {0, 0, 1, 1, 2, 2, 2};  // the last has no group
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(half.At(i), expected[i]) << i;
  const ScaledAxis even{.length = 8, .halvings = 2};
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(even.At(i), i / 4) << i;
}

TEST(ScaledAxis, CountsFromTheOtherSideWhereItIsMirrored) {
  const ScaledAxis half{.length = 7, .mirrored = true, .halvings = 1};
  // The smaller image has 4 pixels; the first is not read.
  const int64_t expected[] = {1, 1, 1, 2, 2, 3, 3};
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(half.At(i), expected[i]) << i;
}

// Weights per input position.
template <class Table>
std::map<int64_t, double> WeightsOf(const Table& table, int i) {
  std::map<int64_t, double> weights;
  for (int t = 0; t < table.entry(i).taps; ++t)
    weights[table.entry(i).start + t] +=
        table.weights(i)[t] / static_cast<double>(int64_t{1} << table.bits());
  return weights;
}

TEST(ScaledTable, AddsUpTheWeightsOfThePixelsThatBecameOne) {
  ResampleTable table;
  ScaledTable scaled;
  for (const Filter filter :
       {Filter::kLinear, Filter::kCubic, Filter::kLanczos3})
    for (const auto& [in, out] : {std::pair(8, 1),
                                  {64, 8},
                                  {211, 26},
                                  {211, 13},
                                  {1000, 3},
                                  {5000, 224}})
      for (int halvings = 1; halvings <= 3; ++halvings)
        for (const bool mirrored : {false, true})
          for (const int origin : {0, 1, 5}) {
            const int length = in + origin + 3;
            const ScaledAxis axis{length, mirrored, halvings};
            const int first = out / 3, count = out - first;
            table.Build(ResampleAxis::Whole(in, out, filter, true), first,
                        count, mirrored);
            scaled.Build(table, origin, axis);
            ASSERT_EQ(scaled.size(), count);
            EXPECT_LE(scaled.max_taps(), table.max_taps());
            EXPECT_LE(scaled.bits(), table.bits());
            EXPECT_GE(scaled.bits(), 11);
            for (int i = 0; i < count; ++i) {
              std::map<int64_t, double> expected;
              for (const auto& [position, weight] : WeightsOf(table, i))
                expected[axis.At(origin + position)] += weight;
              const auto& entry = scaled.entry(i);
              ASSERT_GT(entry.taps, 0);
              EXPECT_GE(entry.start, scaled.first_input());
              EXPECT_LE(entry.start + entry.taps, scaled.end_input());
              EXPECT_GE(entry.start, 0);
              // Whole groups only.
              EXPECT_LE(scaled.end_input(), (length + 7) >> halvings);
              for (const auto& [position, weight] : WeightsOf(scaled, i))
                EXPECT_NEAR(weight, expected[position],
                            1.0 / (1 << scaled.bits()))
                    << in << " " << out << " " << halvings;
              EXPECT_EQ(std::accumulate(scaled.weights(i),
                                        scaled.weights(i) + entry.taps, 0),
                        1 << scaled.bits());
            }
          }
}

TEST(ScaledTable, KeepsAllBitsWhereSumsAreSmall) {
  ResampleTable table;
  ScaledTable scaled;
  table.Build(ResampleAxis::Whole(64, 32, Filter::kLinear, true), 0, 32, false);
  scaled.Build(table, 0, {.length = 64, .halvings = 1});
  // 1 3 3 1 becomes 1 6 1.
  const auto& entry = scaled.entry(7);
  ASSERT_EQ(entry.taps, 3);
  EXPECT_EQ(entry.start, 6);
  EXPECT_EQ(scaled.weights(7)[0], scaled.weights(7)[2]);
  EXPECT_EQ(scaled.weights(7)[1], 6 * scaled.weights(7)[0]);
}

}  // namespace
}  // namespace leat::worker
