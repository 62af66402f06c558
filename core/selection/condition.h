// SPDX-License-Identifier: Apache-2.0
//
// Condition: what `select(where=...)` says of samples.
//
//   width >= 256 and label in [3, 7] and not name like "*_dup*"
//   length(caption) < 77 or (score > 0.5 and score <= other_score)
//
//   condition   = all { "or" all }
//   all         = term { "and" term }
//   term        = "not" term | "(" condition ")" | comparison
//   comparison  = operand ( == | != | < | <= | > | >= ) operand
//               | column [ "not" ] "in" "[" literal { "," literal } "]"
//               | column [ "not" ] "like" text
//   operand     = column | literal
//   column      = name | "length" "(" name ")"
//   literal     = number | text | true | false
//
// One side of a comparison at least is a column. A name that has other
// characters than letters, digits, "_" and ".", begins with a digit, or is a
// word of the language, stands between backquotes. Texts stand between " or ',
// where \ precedes a quote or a \.
//
// A comparison with a value that is not there is false, so that `not (x < 5)`
// holds where x is not there, and `x not in [5]` is `not x in [5]`.
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/selection/column_range.h"
#include "core/selection/column_value.h"

namespace leat {

inline constexpr size_t kMaxConditionBytes = 64 << 10;
inline constexpr int kMaxConditionDepth = 64;
// Comparisons and the entries of lists, together.
inline constexpr size_t kMaxConditionTerms = 10'000;
inline constexpr size_t kMaxConditionColumns = 100;
inline constexpr size_t kMaxLikeBytes = 1024;

// A column of a dataset, as a condition names it.
struct ColumnName {
  std::string name;
  bool length = false;  // of the values of `name`
  friend bool operator==(const ColumnName&, const ColumnName&) = default;
};
// Returns "width", "length(caption)" or "`odd name`".
std::string TextOf(const ColumnName& column);
// Reads a column as a condition writes it. kInvalidArgument: `text` is something
// else; the message calls it `field`.
absl::StatusOr<ColumnName> ParseColumn(std::string_view text,
                                       std::string_view field);

namespace condition {
struct Node;

// Returns what was meant by the sign or word at character `at`, where the text
// is wrong but another language has it: "==" for "=", "and" for "AND". Returns
// "" if nothing is known.
std::string_view MeantAt(std::string_view text, size_t at);
}  // namespace condition

class Condition {
 public:
  // kInvalidArgument: says at which character `text` is wrong, what is there,
  // what was expected and perhaps meant; or names the bound that it exceeds.
  static absl::StatusOr<Condition> Parse(std::string_view text);

  // Two conditions of equal text are equal. Parse(CanonicalText()) has the same
  // text. Spaces, quotes, parentheses and the way to write a number are
  // normalised; literals stand on the right, and the entries of a list are
  // sorted.
  const std::string& CanonicalText() const { return text_; }
  // The columns, in the order in which the text first names them.
  const std::vector<ColumnName>& columns() const { return columns_; }
  // Returns how the columns are used, parallel to columns(), so that a wrong
  // type is found before samples are read: the first number and the first text
  // that each is compared with.
  struct Use {
    std::optional<std::string> number, text;
  };
  const std::vector<Use>& uses() const { return uses_; }
  // Returns whether the condition holds for these values. REQUIRES: `values`
  // is parallel to columns().
  bool Holds(std::span<const ColumnValue> values) const;
  // Returns what it may be for samples whose values lie in these ranges.
  // REQUIRES: as Holds.
  Outcomes Within(std::span<const ColumnRange> ranges) const;

 private:
  Condition() = default;

  std::shared_ptr<const condition::Node> root_;
  std::string text_;
  std::vector<ColumnName> columns_;
  std::vector<Use> uses_;
};

}  // namespace leat
