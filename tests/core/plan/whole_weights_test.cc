// SPDX-License-Identifier: Apache-2.0
#include "core/plan/whole_weights.h"

#include <limits>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Numbers = std::vector<uint64_t>;

const std::vector<std::string> kNames = {"web", "books", "code"};

std::string ErrorOf(const std::vector<double>& weights) {
  const auto whole = WholeWeights(weights, kNames);
  EXPECT_EQ(whole.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(whole.status()));
}

TEST(WholeWeights, AreSharesOf2To32) {
  EXPECT_EQ(WholeWeights(std::vector<double>{7, 2, 1}).value(),
            (Numbers{3006477107, 858993459, 429496730}));
  EXPECT_EQ(WholeWeights(std::vector<double>{1, 0, 3}).value(),
            (Numbers{1u << 30, 0, 3u << 30}));
  EXPECT_EQ(WholeWeights(std::vector<double>{1e-300}).value(),
            (Numbers{uint64_t{1} << 32}));
}

TEST(WholeWeights, DependOnSharesOnly) {
  const auto whole = [](double factor) {
    return WholeWeights(
               std::vector<double>{0.7 * factor, 0.2 * factor, 0.1 * factor})
        .value();
  };
  EXPECT_EQ(whole(1), whole(1024));
  EXPECT_EQ(whole(1), whole(1.0 / 1024));
}

TEST(WholeWeights, NumbersOfTheLargestSizeDoNotOverflow) {
  EXPECT_EQ(WholeWeights(std::vector<double>(1000, kMaxWeight)).value(),
            WholeWeights(std::vector<double>(1000, 1)).value());
  EXPECT_EQ(ErrorOf({1, 1e101, 1}),
            "weights[\"books\"] = 1e+101; want at most 1e+100");
}

TEST(WholeWeights, RefuseWhatIsNoNumberOf0OrMore) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ErrorOf({1, nan, 1}),
            "weights[\"books\"] = nan; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({1, 1, -0.5}),
            "weights[\"code\"] = -0.5; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({-infinity, 1, 1}),
            "weights[\"web\"] = -inf; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({infinity, 1, 1}),
            "weights[\"web\"] = inf; want at most 1e+100");
}

TEST(WholeWeights, RefuseWeightsThatAreAll0OrNone) {
  EXPECT_EQ(ErrorOf({0, -0.0, 0}),
            "weights: all are 0; want at least one over 0");
  EXPECT_EQ(Message(WholeWeights({}).status()),
            "weights has no numbers; want at least one");
}

TEST(WholeWeights, RefuseAWeightBelow2ToMinus32OfTheSum) {
  const double least = 1 / 4294967296.0;
  EXPECT_EQ(WholeWeights(std::vector<double>{1 - least, least}).value(),
            (Numbers{(uint64_t{1} << 32) - 1, 1}));
  EXPECT_EQ(ErrorOf({1, 1, least}),
            "weights[\"code\"] = 2.3283064365386963e-10; want 0, or at least "
            "4.66e-10, which is 2^-32 of the sum");
}

TEST(WholeWeights, ErrorsNameTheFieldAndTheNumberWhereThereAreNoNames) {
  EXPECT_EQ(
      Message(
          WholeWeights(std::vector<double>{1, -1}, {}, "weights[3]").status()),
      "weights[3][1] = -1; want a number of 0 or more");
}

}  // namespace
}  // namespace leat
