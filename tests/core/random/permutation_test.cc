// SPDX-License-Identifier: Apache-2.0
#include "core/random/permutation.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/golden.h"

namespace leat {

class PermutationTest : public ::testing::Test {
 protected:
  static std::vector<uint64_t> Scalar(const Permutation& permutation,
                                      uint64_t first, size_t count) {
    std::vector<uint64_t> out(count);
    std::iota(out.begin(), out.end(), first);
    permutation.MapWith(&Permutation::EncryptScalar, out);
    return out;
  }
  static std::vector<uint64_t> Fastest(const Permutation& permutation,
                                       uint64_t first, size_t count) {
    std::vector<uint64_t> out(count);
    permutation.Map(first, out);
    return out;
  }
  // Checks that every value of [0, n) occurs once.
  static void ExpectBijection(uint64_t n, uint64_t key) {
    std::vector<bool> seen(n);
    for (uint64_t value : Fastest(Permutation(n, key), 0, n)) {
      ASSERT_LT(value, n) << "n " << n << " key " << key;
      ASSERT_FALSE(seen[value]) << "n " << n << " key " << key;
      seen[value] = true;
    }
  }
};

namespace {

TEST_F(PermutationTest, IsABijectionForEveryNTo5000) {
  for (uint64_t n = 1; n <= 5000; ++n) ExpectBijection(n, n * 77);
}

TEST_F(PermutationTest, IsABijectionForSmallNUnderManyKeys) {
  for (uint64_t n = 1; n <= 70; ++n)
    for (uint64_t key = 0; key < 50; ++key) ExpectBijection(n, key);
}

// Some implementations lose an index at powers of four plus one.
TEST_F(PermutationTest, IsABijectionAroundPowersOfTwoAndFour) {
  for (int bits = 13; bits <= 20; ++bits)
    for (int64_t around : {-2, -1, 0, 1, 2})
      ExpectBijection((uint64_t{1} << bits) + static_cast<uint64_t>(around), 5);
  ExpectBijection((uint64_t{1} << 22) + 1, 6);
}

TEST_F(PermutationTest, StaysInRangeAndDistinctUpTo2To48) {
  for (uint64_t n :
       {uint64_t{1'000'000'000}, (uint64_t{1} << 32) + 1,
        (uint64_t{1} << 47) + 1, (uint64_t{1} << 48) - 1, uint64_t{1} << 48}) {
    const Permutation permutation(n, 9);
    std::vector<uint64_t> values = Fastest(permutation, 0, 10'000);
    const std::vector<uint64_t> last = Fastest(permutation, n - 10'000, 10'000);
    values.insert(values.end(), last.begin(), last.end());
    EXPECT_LT(*std::max_element(values.begin(), values.end()), n);
    EXPECT_EQ(std::set<uint64_t>(values.begin(), values.end()).size(), 20'000u);
  }
}

TEST_F(PermutationTest, OneByOneScalarAndFastestAgreeBitForBit) {
  for (uint64_t n :
       {1ull, 2ull, 5ull, 31ull, 32ull, 33ull, 64ull, 65ull, 1000ull, 65536ull,
        65537ull, 1'281'167ull, 1'000'000'000ull, 1ull << 48})
    for (uint64_t key : {0ull, 1ull, ~0ull}) {
      const Permutation permutation(n, key);
      for (size_t count : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 255,
                           256, 257, 1000}) {
        if (count > n) continue;
        for (uint64_t first : {uint64_t{0}, (n - count) / 2, n - count}) {
          const std::vector<uint64_t> fastest =
              Fastest(permutation, first, count);
          ASSERT_EQ(fastest, Scalar(permutation, first, count));
          for (size_t j = 0; j < count; ++j)
            ASSERT_EQ(fastest[j], permutation(first + j));
        }
      }
    }
}

TEST_F(PermutationTest, MapsIndicesInPlaceInAnyOrder) {
  const Permutation permutation(1000, 3);
  std::vector<uint64_t> indices = {999, 0, 5, 5, 17};
  const std::vector<uint64_t> before = indices;
  permutation.MapInPlace(indices);
  for (size_t j = 0; j < indices.size(); ++j)
    EXPECT_EQ(indices[j], permutation(before[j]));
}

TEST_F(PermutationTest, KeysOfOneBitDifferenceGiveUnrelatedOrders) {
  constexpr uint64_t kSize = 10'000;
  const std::vector<uint64_t> base = Fastest(Permutation(kSize, 0), 0, kSize);
  for (int bit = 0; bit < 64; ++bit) {
    const std::vector<uint64_t> other =
        Fastest(Permutation(kSize, uint64_t{1} << bit), 0, kSize);
    int equal = 0;  // Poisson with mean 1
    for (uint64_t i = 0; i < kSize; ++i) equal += base[i] == other[i];
    EXPECT_LE(equal, 8) << bit;
  }
}

TEST_F(PermutationTest, IsGolden) {
  for (const auto& line : GoldenLines("permutation.txt")) {
    ASSERT_EQ(line.size(), 4u);
    const Permutation permutation(std::stoull(line[0]), std::stoull(line[1]));
    EXPECT_EQ(permutation(std::stoull(line[2])), std::stoull(line[3]))
        << line[0] << " " << line[1] << " " << line[2];
  }
}

TEST(MixKey, IsGolden) {
  for (const auto& line : GoldenLines("mix_key.txt")) {
    ASSERT_EQ(line.size(), 4u);
    EXPECT_EQ(MixKey(std::stoull(line[0]), std::stoull(line[1]),
                     std::stoull(line[2])),
              std::stoull(line[3]));
  }
}

TEST(MixKey, TellsNeighboursAndSwappedArgumentsApart) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (uint64_t epoch = 0; epoch < 20; ++epoch)
      for (uint64_t salt = 0; salt < 20; ++salt)
        keys.insert(MixKey(seed, epoch, salt));
  EXPECT_EQ(keys.size(), 8000u);
}

}  // namespace
}  // namespace leat
