// SPDX-License-Identifier: Apache-2.0
#include "core/printable.h"

#include "core/utf8.h"
#include "fmt/format.h"

namespace leat {
namespace {

bool SteersTerminal(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || c == 0x200E ||
         c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

std::optional<CodePoint> DecodeUtf8(std::string_view text) {
  const size_t length = Utf8Length(text);
  if (length == 0) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (length == 1) return CodePoint{byte(0), 1};
  uint32_t value = byte(0) & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) value = value << 6 | (byte(i) & 0x3F);
  return CodePoint{value, length};
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::optional<CodePoint> c = DecodeUtf8(text);
    const size_t bytes = c ? c->bytes : 1;
    if (!c) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (!SteersTerminal(c->value)) {
      out += text.substr(0, bytes);
    } else if (c->value == '\n') {
      out += "\\n";
    } else if (c->value == '\t') {
      out += "\\t";
    } else if (c->value == '\r') {
      out += "\\r";
    } else if (c->value < 0x100) {
      out += fmt::format("\\x{:02x}", c->value);
    } else {
      out += fmt::format("\\u{:04x}", c->value);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string LastWord(std::string_view name) {
  return fmt::format("{}{}", name.starts_with('-') ? "-- " : "", name);
}

}  // namespace leat
