// SPDX-License-Identifier: Apache-2.0
//
// A permutation must be indistinguishable from one drawn uniformly. Each
// statistic then has a known distribution; the limits are 4 to 5 standard
// deviations, and the keys are fixed. The same tests run on a Fisher-Yates
// shuffle, which shows that the limits are right.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "core/random/permutation.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

std::vector<uint64_t> Keyed(uint64_t n, uint64_t key) {
  std::vector<uint64_t> order(n);
  Permutation(n, MixKey(2026, key, 1)).Map(0, order);
  return order;
}

// Shuffles as NumPy's Generator.permutation.
std::vector<uint64_t> FisherYates(uint64_t n, uint64_t key) {
  std::vector<uint64_t> order(n);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::mt19937_64 random(key);
  for (uint64_t i = n; i > 1; --i)
    std::swap(order[i - 1],
              order[std::uniform_int_distribution<uint64_t>(0, i - 1)(random)]);
  return order;
}

using Shuffle = std::vector<uint64_t> (*)(uint64_t n, uint64_t key);

class Statistics : public ::testing::TestWithParam<Shuffle> {
 protected:
  static std::vector<uint64_t> Order(uint64_t n, uint64_t key) {
    return GetParam()(n, key);
  }
};

INSTANTIATE_TEST_SUITE_P(Of, Statistics,
                         ::testing::Values(&Keyed, &FisherYates),
                         [](const auto& info) {
                           return info.param == &Keyed ? "Permutation"
                                                       : "FisherYates";
                         });

// Returns how many standard deviations a chi-square statistic is above its
// mean.
double Deviations(double chi_square, double degrees) {
  return (chi_square - degrees) / std::sqrt(2 * degrees);
}

TEST_P(Statistics, AllPermutationsOfFewAreEquallyLikely) {
  for (uint64_t n = 2; n <= 6; ++n) {
    constexpr int kKeys = 72'000;
    std::map<std::vector<uint64_t>, int> counts;
    for (int key = 0; key < kKeys; ++key)
      ++counts[Order(n, static_cast<uint64_t>(key))];
    const double cells = std::tgamma(static_cast<double>(n) + 1);
    ASSERT_EQ(static_cast<double>(counts.size()), cells);
    double chi_square = 0;
    for (const auto& [order, count] : counts)
      chi_square += std::pow(count - kKeys / cells, 2) / (kKeys / cells);
    EXPECT_LT(Deviations(chi_square, cells - 1), 4) << n;
  }
}

TEST_P(Statistics, EveryValueIsEquallyLikelyEverywhere) {
  for (uint64_t n : {17, 64, 100}) {
    constexpr int kKeys = 20'000;
    std::vector<int> counts(n * n);
    for (int key = 0; key < kKeys; ++key) {
      const std::vector<uint64_t> order = Order(n, static_cast<uint64_t>(key));
      for (uint64_t i = 0; i < n; ++i) ++counts[i * n + order[i]];
    }
    const double expected = kKeys / static_cast<double>(n);
    double chi_square = 0;
    for (int count : counts)
      chi_square += std::pow(count - expected, 2) / expected;
    const double degrees = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(std::abs(Deviations(chi_square, degrees)), 5) << n;
  }
}

// Large n: the values in 64 equal ranges of positions, in 64 bins.
TEST_P(Statistics, EveryStretchDrawsFromEverywhere) {
  constexpr uint64_t kBins = 64;
  for (uint64_t n : {uint64_t{1} << 20, (uint64_t{1} << 20) + 1}) {
    std::vector<int> counts(kBins * kBins);
    const std::vector<uint64_t> order = Order(n, 1);
    for (uint64_t i = 0; i < n; ++i)
      ++counts[(i * kBins / n) * kBins + order[i] * kBins / n];
    const double expected = static_cast<double>(n) / (kBins * kBins);
    double chi_square = 0;
    for (int count : counts)
      chi_square += std::pow(count - expected, 2) / expected;
    EXPECT_LT(std::abs(Deviations(chi_square, (kBins - 1) * (kBins - 1))), 4)
        << n;
  }
}

TEST_P(Statistics, DisplacementIsAThirdOfTheSize) {
  for (uint64_t n : {1000, 65'536, 65'537, 1'000'000}) {
    const std::vector<uint64_t> order = Order(n, 3);
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i)
      sum += std::abs(static_cast<double>(order[i]) - static_cast<double>(i));
    const double size = static_cast<double>(n);
    const double mean = (size * size - 1) / (3 * size);
    // |i - order[i]| has variance n²/18; the mean of n of them at most n/18.
    EXPECT_NEAR(sum / size, mean, 5 * std::sqrt(size / 18)) << n;
  }
}

TEST_P(Statistics, AboutTwoNeighboursStayNeighbours) {
  for (uint64_t n : {64, 1000, 4097}) {
    constexpr int kKeys = 1000;
    int pairs = 0;
    for (int key = 0; key < kKeys; ++key) {
      const std::vector<uint64_t> order = Order(n, static_cast<uint64_t>(key));
      for (uint64_t i = 0; i + 1 < n; ++i)
        pairs += order[i] + 1 == order[i + 1] || order[i + 1] + 1 == order[i];
    }
    const double expected = kKeys * 2 * (1 - 1.0 / static_cast<double>(n));
    EXPECT_NEAR(pairs, expected, 4 * std::sqrt(expected)) << n;
  }
}

// Each difference of neighbours, by subtraction or exclusive or, occurs about
// once (Poisson). A weak network repeats some of them thousands of times.
TEST_P(Statistics, NoDifferenceOfNeighboursIsFrequent) {
  constexpr uint64_t kSize = 1 << 20;
  const std::vector<uint64_t> order = Order(kSize, 4);
  std::vector<int> differences(kSize), xors(kSize);
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    ++differences[(order[i + 1] - order[i]) % kSize];
    ++xors[order[i + 1] ^ order[i]];
  }
  EXPECT_LE(*std::max_element(differences.begin(), differences.end()), 13);
  EXPECT_LE(*std::max_element(xors.begin(), xors.end()), 13);
}

TEST_P(Statistics, NeighboursAreNotCorrelated) {
  for (uint64_t n : {1000, 65'537, 1'000'000}) {
    const std::vector<uint64_t> order = Order(n, 5);
    const double size = static_cast<double>(n), mean = (size - 1) / 2;
    for (uint64_t lag : {1, 2, 16, 256}) {
      double sum = 0;
      for (uint64_t i = 0; i + lag < n; ++i)
        sum += (static_cast<double>(order[i]) - mean) *
               (static_cast<double>(order[i + lag]) - mean);
      const double correlation = sum / (size * (size * size - 1) / 12);
      EXPECT_NEAR(correlation, 0, 5 / std::sqrt(size)) << n << " " << lag;
    }
  }
}

// An epoch's order is independent of the next epoch's.
TEST_P(Statistics, EpochsAgreeInAboutOnePlace) {
  constexpr uint64_t kSize = 5000;
  constexpr int kKeys = 400;
  int equal = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const std::vector<uint64_t> a = Order(kSize, key),
                                b = Order(kSize, key + 1);
    for (uint64_t i = 0; i < kSize; ++i) equal += a[i] == b[i];
  }
  EXPECT_NEAR(equal, kKeys, 5 * std::sqrt(kKeys));
}

// Records are sorted by class, as image folders are: a batch must have as many
// classes as one drawn at random. Networks with too few or too weak rounds give
// fewer (217 instead of 226, for 10 million records).
TEST(ClassSortedRecords, GiveBatchesOfAsManyClassesAsRandomOnes) {
  constexpr uint64_t kClasses = 1000, kBatch = 256, kBatches = 3900;
  const double expected =
      kClasses * (1 - std::pow(1 - 1.0 / kClasses, double{kBatch}));
  for (uint64_t n : {1'281'167ull, 10'000'000ull, 1'000'000'000ull})
    for (uint64_t seed : {0, 1, 42, 123, 9999, 77}) {
      std::vector<uint64_t> order(kBatch * kBatches);
      Permutation(n, MixKey(seed, 0, 0)).Map(0, order);
      std::vector<uint64_t> last_batch_of(kClasses, kBatches);
      double sum = 0, sum_of_squares = 0;
      for (uint64_t batch = 0; batch < kBatches; ++batch) {
        double unique = 0;
        for (uint64_t i = 0; i < kBatch; ++i) {
          const uint64_t label = order[batch * kBatch + i] * kClasses / n;
          unique += last_batch_of[label] != batch;
          last_batch_of[label] = batch;
        }
        sum += unique;
        sum_of_squares += unique * unique;
      }
      const double mean = sum / kBatches;
      const double deviation =
          std::sqrt(sum_of_squares / kBatches - mean * mean);
      EXPECT_NEAR(mean, expected, 0.4) << n << " " << seed;
      EXPECT_NEAR(deviation, 4.62, 0.4) << n << " " << seed;
    }
}

}  // namespace
}  // namespace leat
