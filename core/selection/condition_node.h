// SPDX-License-Identifier: Apache-2.0
//
// Node: a part of a Condition. Only condition*.cc use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/selection/column_value.h"
#include "core/selection/condition.h"

namespace leat::condition {

using Literal = std::variant<int64_t, double, std::string>;

inline ColumnValue ValueOf(const Literal& literal) {
  if (const auto* whole = std::get_if<int64_t>(&literal)) return *whole;
  if (const auto* number = std::get_if<double>(&literal)) return *number;
  return std::string_view(std::get<std::string>(literal));
}

enum class Kind : uint8_t {
  kOr,
  kAnd,
  kNot,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kLike
};

struct Node {
  Kind kind = Kind::kOr;
  std::vector<Node> parts{};  // of kOr, kAnd: 2 or more; of kNot: 1
  size_t column = 0;          // the left side of a comparison
  // The right side: another column, or literals: one, or of kIn 1 or more,
  // sorted, each once.
  bool other_is_column = false;
  size_t other = 0;
  std::vector<Literal> literals{};
};

struct Parsed {
  Node root;
  std::vector<ColumnName> columns;
};

// Numbers come before texts.
inline bool IsBefore(const Literal& a, const Literal& b) {
  const bool text = std::holds_alternative<std::string>(a);
  if (text != std::holds_alternative<std::string>(b)) return !text;
  return Compare(ValueOf(a), ValueOf(b)) == Ordering::kLess;
}

// Returns the first of sorted literals that is not less than the value.
inline std::vector<Literal>::const_iterator FirstNotBefore(
    const std::vector<Literal>& literals, const ColumnValue& value) {
  return std::lower_bound(
      literals.begin(), literals.end(), value,
      [](const Literal& entry, const ColumnValue& wanted) {
        const Ordering ordering = Compare(ValueOf(entry), wanted);
        return ordering == Ordering::kLess ||
               (ordering == Ordering::kNone &&
                std::holds_alternative<std::string_view>(wanted));
      });
}

// Has the contract of Condition::Parse.
absl::StatusOr<Parsed> Parse(std::string_view text);

// True if `name` may stand without backquotes.
bool IsPlainName(std::string_view name);

}  // namespace leat::condition
