// SPDX-License-Identifier: Apache-2.0
//
// How canonical texts, which plan hashes contain, print their values: as
// "a \"b\"" and 0x1.8p+1. Two different values never have the same text.
// Changing a text invalidates every position.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Appends the text in quotes, with backslashes before quotes and backslashes,
// and control characters as \x and two digits.
void AppendQuoted(std::string_view text, std::string* out);
// Appends the exact value in hexadecimal, independent of the locale.
void AppendDouble(double value, std::string* out);

}  // namespace leat
