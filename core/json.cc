// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <cstddef>
#include <cstdint>

#include "fmt/format.h"

namespace leat {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with; 0: none. Overlong forms,
// surrogates and what is over U+10FFFF are none (table 3-7 of Unicode).
size_t Utf8Length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto between = [&](size_t i, uint8_t low, uint8_t high) {
    return i < text.size() && at(i) >= low && at(i) <= high;
  };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return between(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return between(1, low, high) && between(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return between(1, low, high) && between(2, 0x80, 0xBF) &&
                   between(3, 0x80, 0xBF)
               ? 4
               : 0;
  }
  return 0;
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* json) {
  *json += '"';
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text[0];
    if (length == 0) {
      *json += "\\ufffd";
    } else if (length > 1) {
      json->append(text.substr(0, length));
    } else if (c == '"' || c == '\\') {
      *json += '\\';
      *json += c;
    } else if (c == '\n') {
      *json += "\\n";
    } else if (c == '\t') {
      *json += "\\t";
    } else if (c == '\r') {
      *json += "\\r";
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(*json), "\\u{:04x}",
                     static_cast<uint8_t>(c));
    } else {
      *json += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  *json += '"';
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

}  // namespace leat
