// SPDX-License-Identifier: Apache-2.0
//
// ColumnValue: the value of a column for one sample: a whole number, a number
// with a fraction, a text, or nothing. True and false are 1 and 0. A number
// that is no number (NaN) counts as nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

namespace leat {

using ColumnValue =
    std::variant<std::monostate, int64_t, double, std::string_view>;

// The result of a comparison. kNone makes every comparison false: a value is
// missing, or a text is compared with a number.
enum class Ordering : uint8_t { kLess, kEqual, kGreater, kNone };

// Compares two values: numbers exactly, also a whole one with one that has a
// fraction, and texts by their bytes.
Ordering Compare(const ColumnValue& a, const ColumnValue& b);

// Returns whether `text` matches `pattern`, in which "*" stands for any bytes,
// also none. Takes O(|text| · |pattern|) steps.
bool IsLike(std::string_view text, std::string_view pattern);

}  // namespace leat
