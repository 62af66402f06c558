// SPDX-License-Identifier: Apache-2.0
//
// The code counts what goes right, R(k) = k − L(k). With p = R − q,
//
//     R(k) = ⌊(k·q + ⌊(R−1)/2⌋) / R⌋,
//
// and row k goes right if R(k+1) > R(k): if the remainder of this division is
// R − q or more. The right child is the lighter one, so the products are
// smaller.
//
// The sequence repeats with a period of R rows: R(k + R) = R(k) + q. So row
// a·sum + k has the leaf of row k, and its index there is a·weight more. This
// leaves k < R at the root, and then at every node: a row that goes right has
// R(k) < R(k+1) ≤ R(R) = q, and the same holds on the left. Therefore k·q <
// R²/2 < 2^111, and 64 bits suffice for the weights of WholeWeights.
//
// Consecutive rows are split together. For the next row k + 1 the remainder is
// (remainder + q) mod R, and row k goes right if remainder + q reaches R. The
// rows of a node that go left follow each other again, and so do those that go
// right. So a row takes an addition and a comparison at each level. Many nodes
// have one or two rows in the end, and these take no loop.
//
// Example, weights 7, 2, 1. First leaf 2 (weight 1) and leaf 1 (2) are joined:
// node A weighs 3, leaf 1 is its left child. Then A and leaf 0 (7) are joined:
// the root weighs 10, leaf 0 is its left child.
//
//   k            0  1  2  3  4  5  6  7  8  9  10
//   L(k)         0  1  1  2  3  4  4  5  6  6  7     ⌊(7k + 5) / 10⌋
//   child        l  r  l  l  l  r  l  l  r  l
//   row of A        0           1        2           ⌊(2k + 1) / 3⌋ = 0, 1, 1, 2
//   leaf         0  1  0  0  0  2  0  0  1  0
//   index        0  0  1  2  3  0  4  5  1  6
#include "core/plan/share_tree.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>

namespace leat {
namespace {

// At most sums of this size need no more than 64 bits: its square is < 2^65.
constexpr uint64_t kNarrowSum = uint64_t{5} << 30;
static_assert(static_cast<unsigned __int128>(kNarrowSum) * kNarrowSum >> 65 ==
              0);

// Up a path, weights are at least 1, 2, 3, 5, 8, …, Fibonacci's numbers. A root
// 81 levels up would weigh more than ShareTree::kMaxSum.
constexpr size_t kMostLevels = 80;

// Calls `function` with a value of the type that suffices for the sum.
template <class Function>
auto Widely(uint64_t sum, const Function& function) {
  if (sum <= kNarrowSum) return function(uint64_t{0});
  return function(static_cast<unsigned __int128>(0));
}

// Returns how many of a node's first k rows go right.
template <class Whole>
uint64_t Right(uint64_t k, uint64_t right_weight, uint64_t weight) {
  return static_cast<uint64_t>((Whole{k} * right_weight + (weight - 1) / 2) /
                               weight);
}

// The right children of the nodes on a path, with their rows, which wait until
// the left ones are dealt out: at most one of each level. There is an array for
// each number, since a number that was just written is not read fast as a part
// of a whole entry.
struct WaitingNodes {
  std::array<uint32_t, kMostLevels> node;
  std::array<uint64_t, kMostLevels> first;
  std::array<uint32_t, kMostLevels> begin, end;
  size_t count = 0;
};

}  // namespace

ShareTree::ShareTree(std::vector<uint64_t> weights)
    : weights_(std::move(weights)) {
  std::vector<Number> leaves(weights_.size());
  std::iota(leaves.begin(), leaves.end(), Number{0});
  std::erase_if(leaves, [&](Number leaf) { return weights_[leaf] == 0; });
  std::ranges::stable_sort(leaves, {},
                           [&](Number leaf) { return weights_[leaf]; });
  nodes_.reserve(leaves.size() - 1);
  parents_.resize(weights_.size() + leaves.size() - 1);
  // Inner nodes are born in the order of their weights. So the least node is
  // the first that is left of the leaves or of the inner nodes: two queues.
  size_t next_leaf = 0, next_node = 0;
  const auto take = [&] {
    const bool inner = next_leaf == leaves.size() ||
                       (next_node < nodes_.size() &&
                        nodes_[next_node].weight < weights_[leaves[next_leaf]]);
    return inner ? static_cast<Number>(weights_.size() + next_node++)
                 : leaves[next_leaf++];
  };
  root_ = take();
  while (nodes_.size() + 1 < leaves.size()) {
    const Number right = root_, left = take();
    const auto number = static_cast<Number>(weights_.size() + nodes_.size());
    nodes_.push_back({.weight = WeightOf(left) + WeightOf(right),
                      .right_weight = WeightOf(right),
                      .left = left,
                      .right = right});
    parents_[left] = parents_[right] = number;
    root_ = take();
  }
  parents_[root_] = root_;
  sum_ = WeightOf(root_);
}

ShareTree::Place ShareTree::Locate(uint64_t k) const {
  const uint64_t periods = k / sum_;
  Place place = Widely(sum_, [&]<class Whole>(Whole) {
    return Walk<Whole>(k - periods * sum_);
  });
  place.index += periods * weights_[place.leaf];
  return place;
}

template <class Whole>
ShareTree::Place ShareTree::Walk(uint64_t k) const {
  Number number = root_;
  while (!IsLeaf(number)) {
    const Node& node = NodeOf(number);
    const Whole scaled = Whole{k} * node.right_weight + (node.weight - 1) / 2;
    const auto before = static_cast<uint64_t>(scaled / node.weight);
    const auto rest = static_cast<uint64_t>(scaled % node.weight);
    const bool right = rest >= node.weight - node.right_weight;
    k = right ? before : k - before;
    number = right ? node.right : node.left;
  }
  return {.leaf = number, .index = k};
}

void ShareTree::DealOut(uint64_t k, std::span<uint32_t> order,
                        std::vector<Hand>* hands) const {
  hands->clear();
  if (order.empty()) return;
  std::iota(order.begin(), order.end(), uint32_t{0});
  const uint64_t periods = k / sum_;
  Widely(sum_, [&]<class Whole>(Whole) {
    Deal<Whole>(k - periods * sum_, order, hands);
  });
  for (Hand& hand : *hands)
    hand.first.index += periods * weights_[hand.first.leaf];
}

template <class Whole>
void ShareTree::Deal(uint64_t k, std::span<uint32_t> order,
                     std::vector<Hand>* hands) const {
  WaitingNodes waiting;
  // The rows of `number` from `first` on stand at `begin` to `end`.
  Number number = root_;
  uint64_t first = k;
  uint32_t begin = 0, end = static_cast<uint32_t>(order.size());
  while (true) {
    while (!IsLeaf(number)) {
      const Node& node = NodeOf(number);
      const Whole scaled =
          Whole{first} * node.right_weight + (node.weight - 1) / 2;
      const auto before = static_cast<uint64_t>(scaled / node.weight);
      const auto rest = static_cast<uint64_t>(scaled % node.weight);
      const uint32_t left_end =
          begin + Split(node, rest, order.subspan(begin, end - begin));
      if (left_end == begin) {
        number = node.right;
        first = before;
        continue;
      }
      if (left_end < end) {
        const size_t i = waiting.count++;
        waiting.node[i] = node.right;
        waiting.first[i] = before;
        waiting.begin[i] = left_end;
        waiting.end[i] = end;
      }
      number = node.left;
      first -= before;
      end = left_end;
    }
    hands->push_back({{number, first}, begin, end});
    if (waiting.count == 0) return;
    const size_t i = --waiting.count;
    number = waiting.node[i];
    first = waiting.first[i];
    begin = waiting.begin[i];
    end = waiting.end[i];
  }
}

uint32_t ShareTree::Split(const Node& node, uint64_t rest,
                          std::span<uint32_t> order) {
  const uint64_t right_weight = node.right_weight;
  const uint64_t left_weight = node.weight - right_weight;
  const bool first_left = rest < left_weight;
  if (order.size() == 1) return first_left;
  if (order.size() == 2) {
    rest = first_left ? rest + right_weight : rest - left_weight;
    const bool second_left = rest < left_weight;
    const uint32_t first = order[0], second = order[1];
    const bool swap = !first_left && second_left;
    order[0] = swap ? second : first;
    order[1] = swap ? first : second;
    return uint32_t{first_left} + second_left;
  }
  std::array<uint32_t, kMostTogether> rights;
  uint32_t num_lefts = 0;
  const auto rows = static_cast<uint32_t>(order.size());
  for (uint32_t i = 0; i < rows; ++i) {
    const bool right = rest >= left_weight;
    rest = right ? rest - left_weight : rest + right_weight;
    const uint32_t row = order[i];
    order[num_lefts] = row;
    rights[i - num_lefts] = row;
    num_lefts += !right;
  }
  std::copy_n(rights.begin(), rows - num_lefts, order.begin() + num_lefts);
  return num_lefts;
}

uint64_t ShareTree::Count(uint32_t leaf, uint64_t k) const {
  if (weights_[leaf] == 0) return 0;
  const uint64_t periods = k / sum_;
  return periods * weights_[leaf] + Widely(sum_, [&]<class Whole>(Whole) {
           return CountIn<Whole>(leaf, k - periods * sum_);
         });
}

template <class Whole>
uint64_t ShareTree::CountIn(uint32_t leaf, uint64_t k) const {
  std::array<Number, kMostLevels> path;
  size_t levels = 0;
  for (Number number = leaf; number != root_; number = parents_[number])
    path[levels++] = number;
  Number above = root_;
  while (levels > 0) {
    const Node& node = NodeOf(above);
    above = path[--levels];
    const uint64_t right = Right<Whole>(k, node.right_weight, node.weight);
    k = above == node.right ? right : k - right;
  }
  return k;
}

void ShareTree::Counts(uint64_t k, std::span<uint64_t> counts) const {
  const uint64_t periods = k / sum_;
  std::ranges::fill(counts, 0);
  Widely(sum_, [&]<class Whole>(Whole) {
    CountsIn<Whole>(k - periods * sum_, counts);
  });
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += periods * weights_[i];
}

template <class Whole>
void ShareTree::CountsIn(uint64_t k, std::span<uint64_t> counts) const {
  std::vector<uint64_t> of_nodes(nodes_.size());
  const auto count_of = [&](Number number) -> uint64_t& {
    return IsLeaf(number) ? counts[number] : of_nodes[number - counts.size()];
  };
  count_of(root_) = k;
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    const uint64_t right =
        Right<Whole>(of_nodes[i], node.right_weight, node.weight);
    count_of(node.right) = right;
    count_of(node.left) = of_nodes[i] - right;
  }
}

double ShareTree::Bound(uint32_t leaf) const {
  if (weights_[leaf] == 0) return 0;
  const auto weight = static_cast<double>(weights_[leaf]);
  double sum = 0;
  for (Number number = leaf; number != root_; number = parents_[number])
    sum += weight / static_cast<double>(WeightOf(number));
  return sum / 2;
}

}  // namespace leat
