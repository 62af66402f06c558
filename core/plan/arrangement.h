// SPDX-License-Identifier: Apache-2.0
//
// Arrangement: which of a dataset's samples a job takes, and in which order,
// where that is not all of them as they were listed. A worker lists an
// arrangement once (worker/source/arranged/), as a dataset over a dataset:
//
//   dataset  "cats"       samples 0 ... 49,999
//   arranged "cats › 0:40000"   its samples are the first 40,000 of those
//
// A job numbers the arranged samples from 0 on, and knows nothing else of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/packing/pack_node.h"

namespace leat {

inline constexpr size_t kMaxListedNumbers = 100'000;
// Samples that may have weights of their own. A weight has 30 bits, and the sum
// of all samples' has the 56 of ShareTree::kMaxSum.
inline constexpr uint64_t kMaxWeighedSamples = uint64_t{1} << 26;

// Numbers of samples, in an order, each once. Exactly one of the three kinds is
// set, or none: all samples.
struct Numbers {
  // A list of at most kMaxListedNumbers.
  std::vector<uint64_t> list;
  // The place of a .npy file of whole numbers, of one axis.
  std::string uri;
  // begin, begin + step, ... below `end`. Step 0: it is no range.
  uint64_t begin = 0, end = 0, step = 0;

  friend bool operator==(const Numbers&, const Numbers&) = default;
};
inline bool IsSet(const Numbers& numbers) {
  return !numbers.list.empty() || !numbers.uri.empty() || numbers.step != 0;
}

// A number of 0 or more for each sample of the dataset: by how much more often
// its rows come than those of a sample of weight 1. At most one of both is set.
struct SampleWeights {
  // A list of at most kMaxListedNumbers.
  std::vector<double> list;
  // The place of a .npy file of numbers, of one axis.
  std::string uri;

  friend bool operator==(const SampleWeights&, const SampleWeights&) = default;
};
inline bool IsSet(const SampleWeights& weights) {
  return !weights.list.empty() || !weights.uri.empty();
}

struct Arrangement {
  Numbers samples;
  // A condition (core/selection/condition.h) that chooses among them; empty:
  // all of them.
  std::string where;
  // Packs the chosen samples: an item is then a row of several.
  std::optional<PackNode> pack{};
  // Puts the chosen samples of a group one after the other, so that groups can
  // have shares. At most one of these is set.
  bool by_class = false;    // the groups of the dataset
  std::string by{};         // a column: a group has one value of it
  SampleWeights weights{};  // a group has one weight, rounded

  friend bool operator==(const Arrangement&, const Arrangement&) = default;
};
// Returns whether its samples stand in groups.
inline bool IsGrouped(const Arrangement& arrangement) {
  return arrangement.by_class || !arrangement.by.empty() ||
         IsSet(arrangement.weights);
}
// Returns whether it chooses among the samples.
inline bool Chooses(const Arrangement& arrangement) {
  return IsSet(arrangement.samples) || !arrangement.where.empty();
}
// Returns whether the arrangement is other than all samples in their order.
inline bool IsSet(const Arrangement& arrangement) {
  return Chooses(arrangement) || IsGrouped(arrangement) ||
         arrangement.pack.has_value();
}

// Returns a line for each thing that the arrangement says: "samples range 0
// 40000 1\n", "where \"width >= 256\"\n", "by \"label\"\n",
// "pack(how=fit,...) 0:0x0p+0\n"; "" if nothing is set. A list stands in it by
// its hash. Equal texts mean equal arrangements. With `place` false it
// lacks the URI of a file, whose numbers are in the dataset's content. Dataset
// IDs and plan hashes contain it. REQUIRES: it passes CheckArrangement.
std::string CanonicalText(const Arrangement& arrangement, bool place = true);
// Returns whether items are rows that are packed, by the canonical text.
bool PacksRows(std::string_view canonical_text);
// Returns the same for people, on one line, without secrets: "0:40000",
// "500 samples", "samples of s3://b/train.npy", "where width >= 256 by label".
std::string ShownText(const Arrangement& arrangement);

// Checks what needs no dataset. kInvalidArgument: numbers of several kinds, an
// empty range, more than kMaxListedNumbers, a number twice, a malformed
// `where`, groups of several kinds or of packed rows, a `by` that is no name of
// a column, a weight that CheckWeight refuses, or what CheckPackNode refuses.
absl::Status CheckArrangement(const Arrangement& arrangement);

}  // namespace leat
