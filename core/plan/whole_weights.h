// SPDX-License-Identifier: Apache-2.0
//
// WholeWeights turns users' weights into the whole numbers that a ShareTree
// (share_tree.h) takes.
//
// With w the weights, summed in their order, weight i becomes
//
//     p_i = ⌊w_i · 2^32 / Σw + ½⌋
//
// in binary64, each operation rounded by itself (the build forbids
// contraction). So the numbers are the same on every machine, and a share errs
// by at most 2^-33 of all rows. Their sum is 2^32, give or take half a unit for
// each weight. For example weights of 7, 2 and 1 become 3006477107, 858993459
// and 429496730.
//
// A pure function; any thread may call it. The golden file is
// tests/golden/shares.txt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat {

// The largest weight: no sum of weights overflows.
inline constexpr double kMaxWeight = 1e100;

// Returns one whole number for each weight; it is 0 only if the weight is.
// `field` and `names` serve errors: weight i is called `field["names[i]"]`, or
// `field[i]` if there are no names.
//
// kInvalidArgument names the weight: it is not a number, negative, over
// kMaxWeight, or positive but below 2^-32 of the sum. Other causes: there are
// no weights, or all are 0. REQUIRES: `names` is empty or as long as `weights`.
absl::StatusOr<std::vector<uint64_t>> WholeWeights(
    std::span<const double> weights, std::span<const std::string> names = {},
    std::string_view field = "weights");

}  // namespace leat
