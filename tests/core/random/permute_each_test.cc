// SPDX-License-Identifier: Apache-2.0
#include "core/random/permute_each.h"

#include <random>
#include <vector>

#include "core/random/permutation.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Lists = std::vector<std::vector<uint64_t>>;

struct KeyedDomain {
  uint64_t n = 0, key = 0;
};

constexpr uint64_t kBegin = 1000;  // of every other list

// Maps each list by a permutation of its own, all together.
Lists Together(const std::vector<KeyedDomain>& keyed, Lists lists,
               PermuteFunction permute = &PermuteEach) {
  std::vector<PermutedIndices> permuted;
  for (size_t i = 0; i < keyed.size(); ++i)
    permuted.push_back(
        {keyed[i].n, keyed[i].key, lists[i], i % 2 == 0 ? 0 : kBegin});
  permute(permuted);
  return lists;
}

// Permutations of few and of many rounds, with and without a walk, more than
// are computed at a time.
TEST(PermuteEach, MapsAsEachPermutationDoes) {
  std::mt19937_64 random(5);
  const std::vector<uint64_t> sizes = {1,
                                       2,
                                       3,
                                       64,
                                       65,
                                       1000,
                                       65536,
                                       65537,
                                       1'281'167,
                                       (uint64_t{1} << 32) + 1,
                                       uint64_t{1} << 48};
  for (const size_t count : {1, 7, 200, 1000}) {
    std::vector<KeyedDomain> keyed;
    Lists lists;
    for (size_t i = 0; i < count; ++i) {
      keyed.push_back({sizes[random() % sizes.size()], random()});
      for (size_t j = random() % 20; j > 0; --j) {
        lists.resize(i + 1);
        lists[i].push_back(random() % keyed[i].n);
      }
    }
    lists.resize(count);
    Lists wanted = lists;
    for (size_t i = 0; i < count; ++i)
      for (uint64_t& index : wanted[i])
        index = Permutation(keyed[i].n, keyed[i].key)(index) +
                (i % 2 == 0 ? 0 : kBegin);
    for (const PermuteFunction permute : PermuteFunctions())
      EXPECT_EQ(Together(keyed, lists, permute), wanted);
    EXPECT_EQ(Together(keyed, lists), wanted);
  }
}

TEST(PermuteEach, MapsManyIndicesOfOnePermutation) {
  std::vector<uint64_t> all(1000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::vector<uint64_t> wanted = all;
  Permutation(1000, 3).MapInPlace(wanted);
  EXPECT_EQ(Together({{1000, 3}}, {all}), (Lists{wanted}));
}

TEST(PermuteEach, NoIndicesAreNone) {
  EXPECT_EQ(Together({}, {}), Lists{});
  EXPECT_EQ(Together({{5, 1}}, {{}}), Lists{{}});
}

}  // namespace
}  // namespace leat
