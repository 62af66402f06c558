// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/selection/column_range.h"
#include "core/selection/condition.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

constexpr Outcomes kHolds = {.may_hold = true, .may_fail = false};
constexpr Outcomes kFails = {.may_hold = false, .may_fail = true};
constexpr Outcomes kEither = {};

Outcomes Of(const char* text, const ColumnRange& range) {
  const auto condition = Condition::Parse(text);
  EXPECT_TRUE(condition.ok()) << condition.status();
  return condition->Within({&range, 1});
}

TEST(ConditionWithin, BoundsOfNumbers) {
  const ColumnRange range = {int64_t{3}, int64_t{7}, false};
  for (const char* text : {"a < 8", "a <= 7", "a > 2.5", "a >= 3", "a != 8",
                           "not a == 2", "a < 8 and a > 0", "a == 5 or a < 9"})
    EXPECT_EQ(Of(text, range), kHolds) << text;
  for (const char* text : {"a < 3", "a <= 2.5", "a > 7", "a >= 8", "a == 8",
                           "a in [1, 2, 9]", "a < 0 or a > 9", "not a < 8"})
    EXPECT_EQ(Of(text, range), kFails) << text;
  for (const char* text : {"a < 4", "a == 3", "a in [1, 5]", "a != 4",
                           "a == 'x'", "a == 5 and a > 0", "a > a"})
    EXPECT_EQ(Of(text, range), kEither) << text;
  EXPECT_EQ(Of("a in ['x']", range), kFails);
}

TEST(ConditionWithin, OneValue) {
  const ColumnRange range = {int64_t{3}, int64_t{3}, false};
  for (const char* text : {"a == 3", "a in [1, 3]", "not a != 3"})
    EXPECT_EQ(Of(text, range), kHolds) << text;
}

TEST(ConditionWithin, Texts) {
  const ColumnRange range = {std::string_view("cat"), std::string_view("dog"),
                             false};
  EXPECT_EQ(Of("a < 'e'", range), kHolds);
  EXPECT_EQ(Of("a == 'bird'", range), kFails);
  EXPECT_EQ(Of("a in ['bird', 'fox', 7]", range), kFails);
  for (const char* text : {"a like 'b*'", "a like 'dot'", "a like 'e*'"})
    EXPECT_EQ(Of(text, range), kFails) << text;
  for (const char* text : {"a like 'c*'", "a like 'dog*'", "a like '*x'"})
    EXPECT_EQ(Of(text, range), kEither) << text;
}

// A comparison with what is not there is false.
TEST(ConditionWithin, ValuesThatAreMissing) {
  const ColumnRange some = {int64_t{3}, int64_t{7}, true};
  EXPECT_EQ(Of("a < 8", some), kEither);
  EXPECT_EQ(Of("a > 8", some), kFails);
  EXPECT_EQ(Of("not a > 8", some), kHolds);
  const ColumnRange all = {.may_be_there = false};
  EXPECT_EQ(Of("a < 8", all), kFails);
  EXPECT_EQ(Of("not a like 'x'", all), kHolds);
  EXPECT_EQ(Of("a == a", all), kFails);
}

TEST(ConditionWithin, BoundsThatAreNotKnown) {
  for (const char* text : {"a < 8", "a in [1]", "a like 'x*'", "not a == 3"})
    EXPECT_EQ(Of(text, {}), kEither) << text;
  EXPECT_EQ(Of("a < 8", {.least = int64_t{3}}), kEither);
}

// Whatever values lie in the ranges, the condition is one of what it may be.
TEST(ConditionWithin, IsNeverWrong) {
  std::minstd_rand random(7);
  const auto draw = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const auto term = [&] {
    static constexpr const char* kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
    const char column = "ab"[draw(2)];
    if (draw(5) == 0)
      return fmt::format("{} in [{}, {}.5]", column, draw(9), draw(9));
    return fmt::format("{} {} {}", column, kSigns[draw(6)], draw(9));
  };
  int decided = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = term();
    for (int i = draw(3); i > 0; --i)
      text = fmt::format("{}({}) {} {}", draw(3) == 0 ? "not " : "", text,
                         draw(2) == 0 ? "and" : "or", term());
    const auto condition = Condition::Parse(text);
    ASSERT_TRUE(condition.ok()) << condition.status();
    const size_t columns = condition->columns().size();
    std::vector<ColumnRange> ranges(columns);
    std::vector<std::vector<ColumnValue>> rows(5);
    for (auto& row : rows) row.resize(columns);
    for (size_t c = 0; c < columns; ++c) {
      const int least = draw(9), most = std::min(8, least + draw(4));
      const bool missing = draw(3) == 0;
      ranges[c] = {int64_t{least}, double(most), missing, draw(9) != 0};
      for (auto& row : rows)
        if (ranges[c].may_be_there && !(missing && draw(2) == 0))
          row[c] = least + draw(most - least + 1) + 0.0;
        else
          row[c] = draw(2) == 0 ? ColumnValue() : ColumnValue(std::nan(""));
      if (!ranges[c].may_be_there) ranges[c].may_be_missing = true;
    }
    const Outcomes outcomes = condition->Within(ranges);
    ASSERT_TRUE(outcomes.may_hold || outcomes.may_fail) << text;
    decided += outcomes == kEither ? 0 : 1;
    for (const auto& row : rows)
      ASSERT_TRUE(condition->Holds(row) ? outcomes.may_hold : outcomes.may_fail)
          << text;
  }
  EXPECT_GT(decided, 5000);
}

}  // namespace
}  // namespace leat
