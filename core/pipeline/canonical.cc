// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/canonical.h"

#include <charconv>
#include <cmath>

#include "fmt/format.h"

namespace leat {

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      *out += fmt::format("\\x{:02x}", byte);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

void AppendDouble(double value, std::string* out) {
  if (std::isnan(value)) {
    *out += "nan";
    return;
  }
  if (std::signbit(value)) out->push_back('-');
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) {
    *out += "inf";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, magnitude,
                                 std::chars_format::hex);
  *out += "0x";
  out->append(digits, end.ptr);
}

}  // namespace leat
