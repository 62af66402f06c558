// SPDX-License-Identifier: Apache-2.0
#include "core/selection/condition.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// The rows of tests/golden/conditions.py: width, label, name, score.
const std::vector<std::vector<ColumnValue>> kRows = {
    {int64_t{256}, int64_t{3}, "cats/1_dup.jpg", 0.5},
    {int64_t{255}, int64_t{7}, "cats/2.jpg", 0.25},
    {{}, int64_t{3}, "", std::nan("")},
    {(int64_t{1} << 53) + 1, int64_t{-1}, "a \"quoted\" \\ name", 0x1p53},
    {int64_t{0}, {}, {}, 1e300},
    {kMost, int64_t{3}, "*", 0x1p63},
    {kLeast, int64_t{0}, "dogs/dup_dup", -0x1p63},
    {int64_t{7}, "three", int64_t{5}, int64_t{3}},
};
const std::vector<std::string> kColumns = {"width", "label", "name", "score"};

bool Holds(const Condition& condition, const std::vector<ColumnValue>& row) {
  std::vector<ColumnValue> values;
  for (const ColumnName& column : condition.columns())
    for (size_t i = 0; i < kColumns.size(); ++i)
      if (column.name == kColumns[i]) values.push_back(row[i]);
  EXPECT_EQ(values.size(), condition.columns().size());
  return condition.Holds(values);
}

TEST(Condition, AgreesWithTheSecondImplementation) {
  std::ifstream file(std::string(LEAT_SOURCE_DIR) +
                     "/tests/golden/conditions.txt");
  size_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    ++lines;
    const size_t tab = line.find('\t'), last = line.rfind('\t');
    const auto condition = Condition::Parse(line.substr(0, tab));
    ASSERT_TRUE(condition.ok()) << line << condition.status();
    EXPECT_EQ(condition->CanonicalText(), line.substr(tab + 1, last - tab - 1));
    std::string holds;
    for (const auto& row : kRows) holds += Holds(*condition, row) ? '1' : '0';
    EXPECT_EQ(holds, line.substr(last + 1)) << line;
  }
  EXPECT_GT(lines, 150u);
}

TEST(Condition, OfItsCanonicalTextHasTheSameText) {
  for (const char* text :
       {"a == 1 or (b == 2 or c == 3) and not (d < 1 or e > 2)",
        "`not` in ['x']", "length ( `a b` ) >= 1.50 and length == 3",
        "`back\\`tick` like '*'", "not not (not a.b != -7)"}) {
    const auto condition = Condition::Parse(text);
    ASSERT_TRUE(condition.ok()) << condition.status();
    const auto again = Condition::Parse(condition->CanonicalText());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->CanonicalText(), condition->CanonicalText());
    EXPECT_EQ(again->columns(), condition->columns());
  }
}

TEST(Condition, NamesItsColumnsInTheirOrder) {
  const auto condition = Condition::Parse(
      "length(caption) < 77 and `a b` == 3 and 5 > width or caption == 'x' and "
      "width != height");
  ASSERT_TRUE(condition.ok()) << condition.status();
  std::vector<std::string> texts;
  for (const ColumnName& column : condition->columns())
    texts.push_back(TextOf(column));
  EXPECT_EQ(texts, (std::vector<std::string>{"length(caption)", "`a b`",
                                             "width", "caption", "height"}));
}

TEST(Condition, TellsHowItUsesColumns) {
  const auto condition =
      Condition::Parse("a < 3 and b like 'x' and c in [1, 'y'] and d == a");
  ASSERT_TRUE(condition.ok()) << condition.status();
  std::string uses;
  for (const Condition::Use& use : condition->uses())
    uses += fmt::format("({},{})", use.number.value_or("-"),
                        use.text.value_or("-"));
  EXPECT_EQ(uses, "(3,-)(-,x)(1,y)(-,-)");
}

}  // namespace
}  // namespace leat
