// SPDX-License-Identifier: Apache-2.0
//
// ShareTree deals the rows of an endless sequence out to leaves (sources of a
// mixture, or groups of a dataset) by their weights.
//
// Row k goes to exactly one leaf, and is there the `index`-th row. Each leaf
// sees its own sequence 0, 1, 2, … without gaps. After any number of rows, a
// leaf has its share of them up to Bound(leaf) < 1.68 rows, for ever.
//
// The leaves with a weight over 0 hang in a binary tree, which is built by
// Huffman's rule: the two nodes of the least (weight, birth) are joined until
// one is left. Leaves are born in their order, inner nodes after them. The
// second node that is taken becomes the left child. At a node whose children
// weigh p (left) and q, with R = p + q, the left child has
//
//     L(k) = ⌊(k·p + ⌊R/2⌋) / R⌋
//
// of the node's first k rows. Row k goes left, as row L(k), if L(k+1) > L(k),
// and otherwise right, as row k − L(k).
//
// The bound. Rounding errs by at most ½ a row at each node, and what comes from
// above shrinks by the share below. So |Count(i, k) − k·w_i| ≤ ½ Σ_j w_i / W_j,
// where w_i is the leaf's share and W_j are the shares of the nodes on its
// path, without the root and with the leaf. By Huffman's rule a node weighs at
// least as much as the next two on the path below it together. So the sum is
// less than 1 + 1 + 1/2 + 1/3 + 1/5 + 1/8 + … = 3.36.
//
// For example the weights 7, 2, 1 deal the rows out as 0 1 0 0 0 2 0 0 1 0, and
// again. share_tree.cc has the steps.
//
// Immutable; thread-safe; O(leaves) memory. Whatever k is, results are exact:
// the arithmetic is of whole numbers of 128 bits where 64 do not suffice. The
// golden file is tests/golden/shares.txt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat {

class ShareTree {
 public:
  // The largest sum of weights.
  static constexpr uint64_t kMaxSum = uint64_t{1} << 56;
  // Rows that DealOut locates together.
  static constexpr size_t kMostTogether = 4096;

  struct Place {
    uint32_t leaf = 0;
    uint64_t index = 0;  // the row is the index-th of the leaf, from 0
    friend bool operator==(const Place&, const Place&) = default;
  };

  // Leaf i has weights[i]; a leaf of weight 0 gets no rows. O(n log n).
  // REQUIRES: a sum of 1 to kMaxSum, fewer than 2^31 weights.
  explicit ShareTree(std::vector<uint64_t> weights);

  // Returns the place of row k. It takes a division for each level: about
  // log2(1 / share) levels, 80 at most.
  Place Locate(uint64_t k) const;
  // Rows of one leaf, which follow each other among its rows.
  struct Hand {
    Place first;
    uint32_t begin = 0, end = 0;  // in an order
    uint32_t rows() const { return end - begin; }
  };
  // Locates consecutive rows together, which takes a division for each node
  // that has some of them, and an addition for each row and level. Replaces
  // `hands` by one for each leaf that gets any of the rows from k on, and
  // `order` by the rows' numbers from 0, so that those of a hand follow each
  // other and ascend. REQUIRES: order.size() ≤ kMostTogether.
  void DealOut(uint64_t k, std::span<uint32_t> order,
               std::vector<Hand>* hands) const;
  // Returns how many of the first k rows are the leaf's. As fast as Locate.
  // REQUIRES: leaf < weights().size().
  uint64_t Count(uint32_t leaf, uint64_t k) const;
  // Sets counts[i] = Count(i, k) for all leaves. O(leaves). REQUIRES:
  // counts.size() == weights().size().
  void Counts(uint64_t k, std::span<uint64_t> counts) const;
  // Returns a bound of |Count(leaf, k) − k·share| for all k, in rows. REQUIRES:
  // leaf < weights().size().
  double Bound(uint32_t leaf) const;

  std::span<const uint64_t> weights() const { return weights_; }
  uint64_t sum() const { return sum_; }

 private:
  // A node's number: a leaf's own, or weights_.size() + the place in nodes_.
  using Number = uint32_t;
  struct Node {
    uint64_t weight = 0;
    uint64_t right_weight = 0;  // at most half
    Number left = 0, right = 0;
  };

  bool IsLeaf(Number number) const { return number < weights_.size(); }
  const Node& NodeOf(Number number) const {
    return nodes_[number - weights_.size()];
  }
  uint64_t WeightOf(Number number) const {
    return IsLeaf(number) ? weights_[number] : NodeOf(number).weight;
  }
  // Those with k < sum_ (Walk, Deal) or k ≤ sum_, in numbers of type Whole.
  template <class Whole>
  Place Walk(uint64_t k) const;
  template <class Whole>
  void Deal(uint64_t k, std::span<uint32_t> order,
            std::vector<Hand>* hands) const;
  // Moves the rows of a node that go left to the front, and returns how many
  // these are. `rest`: the remainder of the first row's division.
  static uint32_t Split(const Node& node, uint64_t rest,
                        std::span<uint32_t> order);
  template <class Whole>
  uint64_t CountIn(uint32_t leaf, uint64_t k) const;
  template <class Whole>
  void CountsIn(uint64_t k, std::span<uint64_t> counts) const;

  std::vector<uint64_t> weights_;
  uint64_t sum_ = 0;
  std::vector<Node> nodes_;      // inner nodes by birth; the root is the last
  std::vector<Number> parents_;  // of each number; the root has itself
  Number root_ = 0;
};

}  // namespace leat
