// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <cstddef>
#include <cstdint>

#include "core/utf8.h"
#include "fmt/format.h"

namespace leat {
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
