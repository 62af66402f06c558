// SPDX-License-Identifier: Apache-2.0
//
// Finds out which results a condition may have for samples if only ranges of
// their values are known.
#include <algorithm>

#include "core/selection/condition.h"
#include "core/selection/condition_node.h"

namespace leat {
namespace condition {
namespace {

constexpr Outcomes kFails = {.may_hold = false, .may_fail = true};

Outcomes OfOrdered(Kind kind, const ColumnRange& range,
                   const ColumnValue& literal) {
  const Ordering least = Compare(range.least, literal);
  const Ordering most = Compare(range.most, literal);
  // Bounds are not known, or a text stands beside a number.
  if (least == Ordering::kNone || most == Ordering::kNone) return {};
  const bool one = least == Ordering::kEqual && most == Ordering::kEqual;
  bool some = false, all = false;  // of the values that are there
  switch (kind) {
    case Kind::kEqual:
      some = least != Ordering::kGreater && most != Ordering::kLess;
      all = one;
      break;
    case Kind::kUnequal:
      some = !one;
      all = least == Ordering::kGreater || most == Ordering::kLess;
      break;
    case Kind::kLess:
      some = least == Ordering::kLess;
      all = most == Ordering::kLess;
      break;
    case Kind::kLessEqual:
      some = least != Ordering::kGreater;
      all = most != Ordering::kGreater;
      break;
    case Kind::kGreater:
      some = most == Ordering::kGreater;
      all = least == Ordering::kGreater;
      break;
    default:
      some = most != Ordering::kLess;
      all = least != Ordering::kLess;
  }
  return {.may_hold = some, .may_fail = !all || range.may_be_missing};
}

Outcomes OfIn(const Node& node, const ColumnRange& range) {
  if (Compare(range.least, range.most) == Ordering::kNone) return {};
  const auto at = FirstNotBefore(node.literals, range.least);
  if (at == node.literals.end()) return kFails;
  const Ordering most = Compare(ValueOf(*at), range.most);
  const bool within = most == Ordering::kLess || most == Ordering::kEqual;
  const bool one = Compare(range.least, range.most) == Ordering::kEqual;
  return {.may_hold = within,
          .may_fail = !within || !one || range.may_be_missing};
}

// Texts that begin as the pattern does lie together.
Outcomes OfLike(const Node& node, const ColumnRange& range) {
  const auto* least = std::get_if<std::string_view>(&range.least);
  const auto* most = std::get_if<std::string_view>(&range.most);
  if (least == nullptr || most == nullptr) return {};
  std::string_view prefix = std::get<std::string>(node.literals[0]);
  prefix = prefix.substr(0, prefix.find('*'));
  return {
      .may_hold = *most >= prefix && least->substr(0, prefix.size()) <= prefix,
      .may_fail = true};
}

}  // namespace

// Recursion is as deep as the parser allows.
Outcomes Within(const Node& node, std::span<const ColumnRange> ranges) {
  if (node.kind == Kind::kNot) {
    const Outcomes part = Within(node.parts[0], ranges);
    return {.may_hold = part.may_fail, .may_fail = part.may_hold};
  }
  if (node.kind == Kind::kOr || node.kind == Kind::kAnd) {
    bool some_hold = false, all_hold = true, some_fail = false, all_fail = true;
    for (const Node& part : node.parts) {
      const Outcomes each = Within(part, ranges);
      some_hold |= each.may_hold;
      all_hold &= each.may_hold;
      some_fail |= each.may_fail;
      all_fail &= each.may_fail;
    }
    return node.kind == Kind::kOr ? Outcomes{some_hold, all_fail}
                                  : Outcomes{all_hold, some_fail};
  }
  const ColumnRange& range = ranges[node.column];
  if (!range.may_be_there ||
      (node.other_is_column && !ranges[node.other].may_be_there))
    return kFails;
  if (node.other_is_column) return {};
  if (node.kind == Kind::kIn) return OfIn(node, range);
  if (node.kind == Kind::kLike) return OfLike(node, range);
  return OfOrdered(node.kind, range, ValueOf(node.literals[0]));
}

}  // namespace condition

Outcomes Condition::Within(std::span<const ColumnRange> ranges) const {
  return condition::Within(*root_, ranges);
}

}  // namespace leat
