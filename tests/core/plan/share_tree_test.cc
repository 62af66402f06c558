// SPDX-License-Identifier: Apache-2.0
#include "core/plan/share_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/plan/whole_weights.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"

namespace leat {
namespace {

using Weights = std::vector<uint64_t>;
using Wide = unsigned __int128;

constexpr double kWorstBound = 1.68;

Weights Whole(const std::vector<double>& weights) {
  return WholeWeights(weights).value();
}

Weights Zipf(size_t count) {
  std::vector<double> weights(count);
  for (size_t i = 0; i < count; ++i)
    weights[i] = 1 / static_cast<double>(i + 1);
  return Whole(weights);
}

Weights Fibonacci(size_t count) {
  Weights weights = {1, 1};
  while (weights.size() < count)
    weights.push_back(weights.back() + weights[weights.size() - 2]);
  return weights;
}

Weights Random(std::mt19937_64* random) {
  std::vector<double> weights(2 + (*random)() % 38);
  for (double& weight : weights)
    weight = std::exp2(static_cast<double>((*random)() % 2000) / 100);
  return Whole(weights);
}

// The mixtures of tests/golden/generate.py.
const std::map<std::string, Weights>& Mixtures() {
  static const auto* mixtures = new std::map<std::string, Weights>{
      {"one", Whole({3})},
      {"three", Whole({0.7, 0.2, 0.1})},
      {"gap", Whole({0.5, 0, 0.49, 0.01, 0})},
      {"even_7", Whole(std::vector<double>(7, 1))},
      {"zipf_100", Zipf(100)},
      {"zipf_1000", Zipf(1000)},
      {"fibonacci_80", Fibonacci(80)},
      {"largest", {ShareTree::kMaxSum - 3, 1, 1, 1}},
      {"wide",
       {uint64_t{1} << 55, (uint64_t{1} << 53) - 7, 3, (uint64_t{1} << 54) + 1,
        0, (uint64_t{1} << 48) + 12345, 1}}};
  return *mixtures;
}

// The definition, word for word: the tree by repeated searches for the two
// least nodes, and all arithmetic in 128 bits from the root.
class SlowTree {
 public:
  explicit SlowTree(const Weights& weights) {
    std::vector<size_t> alive;
    for (uint32_t i = 0; i < weights.size(); ++i) {
      nodes_.push_back({.weight = weights[i], .leaf = i});
      if (weights[i] > 0) alive.push_back(i);
    }
    const auto take = [&] {
      const auto least = std::ranges::min_element(alive, {}, [&](size_t node) {
        return std::pair(nodes_[node].weight, node);
      });
      const size_t node = *least;
      alive.erase(least);
      return node;
    };
    while (alive.size() > 1) {
      const size_t first = take(), second = take();
      nodes_.push_back({.weight = nodes_[first].weight + nodes_[second].weight,
                        .left = second,
                        .right = first});
      alive.push_back(nodes_.size() - 1);
    }
    root_ = alive.front();
  }

  ShareTree::Place Locate(uint64_t k) const {
    size_t node = root_;
    while (nodes_[node].left != nodes_[node].right) {
      const uint64_t left = Lefts(nodes_[node], k);
      const bool goes_left = Lefts(nodes_[node], k + 1) > left;
      k = goes_left ? left : k - left;
      node = goes_left ? nodes_[node].left : nodes_[node].right;
    }
    return {nodes_[node].leaf, k};
  }

 private:
  struct Node {
    uint64_t weight = 0;
    uint32_t leaf = 0;
    size_t left = 0, right = 0;
  };
  uint64_t Lefts(const Node& node, uint64_t k) const {
    const Wide scaled = Wide{k} * nodes_[node.left].weight + node.weight / 2;
    return static_cast<uint64_t>(scaled / node.weight);
  }
  std::vector<Node> nodes_;
  size_t root_ = 0;
};

// Rows that are located together, and over the end of a period.
TEST(ShareTree, DealsConsecutiveRowsOutAsItLocatesEach) {
  std::mt19937_64 random(11);
  std::vector<ShareTree::Hand> hands = {{}};
  for (const auto& [name, weights] : Mixtures()) {
    const ShareTree tree(weights);
    for (const size_t count : {0, 1, 2, 64, 1000, 4096})
      for (const uint64_t k :
           {uint64_t{0}, tree.sum() - std::min<uint64_t>(tree.sum(), 3),
            random() % (uint64_t{1} << 60)}) {
        std::vector<uint32_t> order(count);
        tree.DealOut(k, order, &hands);
        size_t dealt = 0;
        for (const ShareTree::Hand& hand : hands) {
          ASSERT_GT(hand.rows(), 0u);
          dealt += hand.rows();
          const auto rows = std::span(order).subspan(hand.begin, hand.rows());
          ASSERT_TRUE(std::ranges::is_sorted(rows));
          for (size_t i = 0; i < rows.size(); ++i)
            ASSERT_EQ(tree.Locate(k + rows[i]),
                      (ShareTree::Place{hand.first.leaf, hand.first.index + i}))
                << name << " " << k << " " << rows[i];
        }
        std::ranges::sort(order);
        ASSERT_EQ(dealt, count);
        for (uint32_t row = 0; row < count; ++row) ASSERT_EQ(order[row], row);
      }
  }
}

// The example in share_tree.cc.
TEST(ShareTree, DealsRowsOutAsItsExampleSays) {
  const ShareTree tree({7, 2, 1});
  const uint32_t leaves[] = {0, 1, 0, 0, 0, 2, 0, 0, 1, 0};
  const uint64_t indices[] = {0, 0, 1, 2, 3, 0, 4, 5, 1, 6};
  for (uint64_t k = 0; k < 10; ++k) {
    EXPECT_EQ(tree.Locate(k), (ShareTree::Place{leaves[k], indices[k]})) << k;
    EXPECT_EQ(tree.Locate(k + 10).leaf, leaves[k]) << k;
  }
  EXPECT_EQ(tree.sum(), 10u);
  EXPECT_EQ(tree.Count(1, 6), 1u);
}

TEST(ShareTree, OneLeafHasEveryRow) {
  const ShareTree tree({0, 5, 0});
  for (const uint64_t k :
       {uint64_t{0}, uint64_t{4}, uint64_t{5}, ~uint64_t{0}}) {
    EXPECT_EQ(tree.Locate(k), (ShareTree::Place{1, k}));
    EXPECT_EQ(tree.Count(1, k), k);
    EXPECT_EQ(tree.Count(0, k), 0u);
  }
  EXPECT_EQ(tree.Bound(1), 0);
  EXPECT_EQ(tree.Bound(0), 0);
}

TEST(ShareTree, IsAPartitionIntoStreamsWithoutGaps) {
  for (const auto& [name, weights] : Mixtures()) {
    const ShareTree tree(weights);
    Weights seen(weights.size()), counts(weights.size());
    for (uint64_t k = 0; k < 20'000; ++k) {
      if (k % 1999 == 0) {
        tree.Counts(k, counts);
        ASSERT_EQ(counts, seen) << name << " " << k;
        for (uint32_t leaf = 0; leaf < weights.size(); ++leaf)
          ASSERT_EQ(tree.Count(leaf, k), seen[leaf]) << name << " " << k;
      }
      const ShareTree::Place place = tree.Locate(k);
      ASSERT_LT(place.leaf, weights.size());
      ASSERT_GT(weights[place.leaf], 0u);
      ASSERT_EQ(place.index, seen[place.leaf]++) << name << " " << k;
    }
  }
}

TEST(ShareTree, EqualsTheDefinitionAtAnyRow) {
  std::mt19937_64 random(1);
  for (const auto& mixture : Mixtures()) {
    const std::string& name = mixture.first;
    const ShareTree tree(mixture.second);
    const SlowTree slow(mixture.second);
    const auto check = [&](uint64_t k) {
      const ShareTree::Place place = tree.Locate(k);
      ASSERT_EQ(place, slow.Locate(k)) << name << " " << k;
      ASSERT_EQ(tree.Count(place.leaf, k), place.index) << name << " " << k;
      ASSERT_EQ(tree.Count(place.leaf, k + 1), place.index + 1);
    };
    for (int i = 0; i < 300; ++i) {
      check((uint64_t{1} << 60) - 1 - static_cast<uint64_t>(i));
      check(random() >> (4 + random() % 50));
      check(tree.sum() * (1 + random() % 16) - random() % 2);
    }
  }
}

TEST(ShareTree, CountsOfAllLeavesAddUp) {
  std::mt19937_64 random(2);
  for (const auto& [name, weights] : Mixtures()) {
    const ShareTree tree(weights);
    Weights counts(weights.size());
    for (int i = 0; i < 20; ++i) {
      const uint64_t k = random() >> (4 + random() % 50);
      tree.Counts(k, counts);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}), k);
      const auto leaf = static_cast<uint32_t>(random() % weights.size());
      EXPECT_EQ(counts[leaf], tree.Count(leaf, k)) << name;
    }
  }
}

// Checks |rows − k·share| ≤ bound for each prefix of `rows` rows from `first`;
// returns the worst.
double WorstError(const Weights& weights, uint64_t first, uint64_t rows) {
  const ShareTree tree(weights);
  Weights counts(weights.size());
  tree.Counts(first, counts);
  double worst = 0;
  for (uint64_t k = first; k < first + rows; ++k) {
    // A leaf's error is largest just before its row and just after it.
    const ShareTree::Place place = tree.Locate(k);
    const uint64_t weight = weights[place.leaf];
    for (const uint64_t after : {uint64_t{0}, uint64_t{1}}) {
      const Wide exact = Wide{k + after} * weight;
      const Wide counted = Wide{counts[place.leaf] + after} * tree.sum();
      const Wide error = exact > counted ? exact - counted : counted - exact;
      const double off =
          static_cast<double>(error) / static_cast<double>(tree.sum());
      EXPECT_LE(off, tree.Bound(place.leaf) + 1e-9) << k;
      worst = std::max(worst, off);
    }
    ++counts[place.leaf];
  }
  return worst;
}

TEST(ShareTree, StaysWithinItsBoundForEver) {
  std::mt19937_64 random(3);
  std::vector<Weights> mixtures;
  for (const auto& [name, weights] : Mixtures()) mixtures.push_back(weights);
  for (int i = 0; i < 50; ++i) mixtures.push_back(Random(&random));
  for (const Weights& weights : mixtures) {
    const ShareTree tree(weights);
    for (uint32_t leaf = 0; leaf < weights.size(); ++leaf)
      ASSERT_LT(tree.Bound(leaf), kWorstBound);
    EXPECT_LT(WorstError(weights, 0, 4000), kWorstBound);
    EXPECT_LT(WorstError(weights, (uint64_t{1} << 60) - 4000, 4000),
              kWorstBound);
  }
}

// Prefix errors that the design has measured.
TEST(ShareTree, IsWithinOneRowInUsualMixtures) {
  EXPECT_LT(WorstError(Whole({.7, .3}), 0, 50'000), 0.505);
  EXPECT_LT(WorstError(Whole({.5, .49, .01}), 0, 50'000), 1);
  EXPECT_LT(WorstError(Zipf(100), 0, 50'000), 1);
  EXPECT_LT(WorstError(Zipf(1000), 0, 16'000), 1.005);
  EXPECT_LT(WorstError(Fibonacci(20), 0, 50'000), 1.005);
}

TEST(ShareTree, AnEvenShareIsNeverOffByMoreThanItsRows) {
  const ShareTree tree(Weights(1000, 1));
  for (uint64_t round = 0; round < 3; ++round) {
    std::vector<bool> seen(1000);
    for (uint64_t k = 0; k < 1000; ++k) {
      const ShareTree::Place place = tree.Locate(round * 1000 + k);
      ASSERT_EQ(place.index, round);
      ASSERT_FALSE(seen[place.leaf]);
      seen[place.leaf] = true;
    }
  }
}

// A source that is appended with weight 0, or taken away, moves no row.
TEST(ShareTree, LeavesWithoutWeightChangeNothing) {
  const ShareTree tree({7, 2, 1}), more({7, 2, 1, 0, 0});
  for (uint64_t k = 0; k < 100; ++k) EXPECT_EQ(tree.Locate(k), more.Locate(k));
}

TEST(ShareTree, IsGolden) {
  for (const auto& line : GoldenLines("shares.txt")) {
    const auto number = [&](size_t i) { return std::stoull(line.at(i)); };
    const auto mixture = Mixtures().find(line.at(1));
    if (mixture == Mixtures().end()) continue;  // of another test
    const Weights& weights = mixture->second;
    const ShareTree tree(weights);
    if (line[0] == "whole") {
      EXPECT_EQ(line[2] == "sum" ? tree.sum() : weights.at(number(2)),
                number(3));
    } else if (line[0] == "locate") {
      EXPECT_EQ(tree.Locate(number(2)),
                (ShareTree::Place{static_cast<uint32_t>(number(3)), number(4)}))
          << line[1] << " " << line[2];
    } else if (line[0] == "count") {
      EXPECT_EQ(tree.Count(static_cast<uint32_t>(number(2)), number(3)),
                number(4))
          << line[1] << " " << line[2];
    }
  }
}

}  // namespace
}  // namespace leat
