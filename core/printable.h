// SPDX-License-Identifier: Apache-2.0
//
// Text from users, files and peers, for terminals and logs. Names may contain
// sequences that a terminal obeys, or that reverse the order of what is shown.
// U+009B, one character, begins such a sequence as ESC [ does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;
};

// Returns the first character of non-empty `text`; nullopt: not UTF-8 (as
// Utf8Length).
std::optional<CodePoint> DecodeUtf8(std::string_view text);

// Returns `text` with everything that could control a terminal made visible:
// control characters (C0, DEL, C1), bidirectional overrides and bytes that are
// not UTF-8 become \n, \t, \xNN or \uNNNN. Other text is unchanged.
std::string Printable(std::string_view text);

// Returns `name` as the last word of a command of `leat` that a text proposes.
// After "--" a name that begins with "-" is not taken for an option.
// REQUIRES: a shell takes the name as it is: a job's, for example.
std::string LastWord(std::string_view name);

}  // namespace leat
