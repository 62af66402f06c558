// SPDX-License-Identifier: Apache-2.0
#include "core/selection/column_value.h"

#include <cmath>

namespace leat {
namespace {

template <class T>
Ordering CompareSame(const T& a, const T& b) {
  if (a < b) return Ordering::kLess;
  return b < a ? Ordering::kGreater : Ordering::kEqual;
}

Ordering Reversed(Ordering ordering) {
  if (ordering == Ordering::kLess) return Ordering::kGreater;
  return ordering == Ordering::kGreater ? Ordering::kLess : ordering;
}

// A whole number of 63 bits may lie between two neighbours of binary64, so it
// is compared with the whole part of `b`, and then with the rest.
Ordering CompareWhole(int64_t a, double b) {
  if (b >= 0x1p63) return Ordering::kLess;
  if (b < -0x1p63) return Ordering::kGreater;
  const double whole = std::trunc(b);
  const Ordering ordering = CompareSame(a, static_cast<int64_t>(whole));
  return ordering == Ordering::kEqual ? CompareSame(whole, b) : ordering;
}

bool IsNothing(const ColumnValue& value) {
  const auto* number = std::get_if<double>(&value);
  return std::holds_alternative<std::monostate>(value) ||
         (number != nullptr && std::isnan(*number));
}

}  // namespace

Ordering Compare(const ColumnValue& a, const ColumnValue& b) {
  if (IsNothing(a) || IsNothing(b)) return Ordering::kNone;
  const auto* text = std::get_if<std::string_view>(&a);
  const auto* other_text = std::get_if<std::string_view>(&b);
  if (text != nullptr || other_text != nullptr)
    return text != nullptr && other_text != nullptr
               ? CompareSame(*text, *other_text)
               : Ordering::kNone;
  const auto* whole = std::get_if<int64_t>(&a);
  const auto* other_whole = std::get_if<int64_t>(&b);
  if (whole != nullptr && other_whole != nullptr)
    return CompareSame(*whole, *other_whole);
  if (whole != nullptr) return CompareWhole(*whole, std::get<double>(b));
  if (other_whole != nullptr)
    return Reversed(CompareWhole(*other_whole, std::get<double>(a)));
  return CompareSame(std::get<double>(a), std::get<double>(b));
}

// The parts between asterisks are looked for from left to right, each as early
// as possible; the last one has to be at the end.
bool IsLike(std::string_view text, std::string_view pattern) {
  size_t star = pattern.find('*');
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find('*')) != pattern.npos) {
    const size_t found = text.find(pattern.substr(0, star));
    if (found == text.npos) return false;
    text.remove_prefix(found + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

}  // namespace leat
