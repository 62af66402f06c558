// SPDX-License-Identifier: Apache-2.0
//
// Texts of `where`: they are refused, or have a canonical text that chooses the
// same samples, and ranges never exclude what a sample in them says.
#include <cstring>

#include "core/selection/condition.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace leat::condition_fuzz {
namespace {

std::vector<ColumnValue> ValuesOf(fuzz::Input* input, size_t count) {
  std::vector<ColumnValue> values;
  for (size_t i = 0; i < count; ++i) switch (input->Byte() % 4) {
      case 0:
        values.emplace_back();
        break;
      case 1:
        values.emplace_back(input->Number<int64_t>());
        break;
      case 2:
        values.emplace_back(input->Number<double>());
        break;
      default:
        values.emplace_back(input->Text());
    }
  return values;
}

// Returns the ranges of one sample alone.
std::vector<ColumnRange> RangesOf(const std::vector<ColumnValue>& values) {
  std::vector<ColumnRange> ranges;
  for (const ColumnValue& value : values) {
    const bool there = Compare(value, value) == Ordering::kEqual;
    ranges.push_back({.least = there ? value : ColumnValue(),
                      .most = there ? value : ColumnValue(),
                      .may_be_missing = !there,
                      .may_be_there = there});
  }
  return ranges;
}

void Run(std::string_view bytes) {
  fuzz::Input input(bytes);
  const auto condition = Condition::Parse(input.Text());
  if (!condition.ok()) return;
  const auto again = Condition::Parse(condition->CanonicalText());
  fuzz::Require(again.ok() &&
                again->CanonicalText() == condition->CanonicalText() &&
                again->columns() == condition->columns());
  const std::vector<ColumnValue> values =
      ValuesOf(&input, condition->columns().size());
  const bool holds = condition->Holds(values);
  fuzz::Require(again->Holds(values) == holds);
  const Outcomes outcomes = condition->Within(RangesOf(values));
  fuzz::Require(holds ? outcomes.may_hold : outcomes.may_fail);
}

std::vector<std::string> Seeds() {
  const std::string values = fuzz::PutByte(1) + fuzz::PutNumber(int64_t{256}) +
                             fuzz::PutByte(3) + fuzz::PutText("a_dup") +
                             fuzz::PutByte(2) + fuzz::PutNumber(0.5);
  std::vector<std::string> seeds;
  for (const char* text :
       {"width >= 256 and name not like \"*_dup*\" or not (score < .5e1)",
        "a in [1, 2.5, 'x', true] and `b c` != length(d)",
        "'a\\'b' == x or -9223372036854775808 < y", "not not ((a == 1))"})
    seeds.push_back(fuzz::PutText(text) + values);
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "condition", .run = Run, .seeds = Seeds, .runs = 5000});

}  // namespace
}  // namespace leat::condition_fuzz
