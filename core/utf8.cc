// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fmt/format.h"

namespace leat {
namespace {

void EndInDebug([[maybe_unused]] std::string_view text) {
#ifndef NDEBUG
  fmt::print(stderr,
             "\"{}\" in a string of a message: pass it through ToUtf8()\n",
             ToUtf8(text, 200));
  std::abort();
#endif
}

std::atomic<BadTextHandler> bad_text = EndInDebug;

}  // namespace

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

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ToUtf8(std::string_view text, size_t most) {
  std::string clean;
  while (!text.empty() && clean.size() < most) {
    const size_t length = Utf8Length(text);
    if (length == 0) {
      clean += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
      text.remove_prefix(1);
    } else {
      clean += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return clean;
}

const std::string& FieldText(const std::string& text) {
  if (IsUtf8(text)) return text;
  bad_text.load()(text);
  static thread_local std::string mended;
  mended = text;
  for (size_t i = 0; i < mended.size();) {
    const size_t length = Utf8Length(std::string_view(mended).substr(i));
    if (length == 0) mended[i] = '?';
    i += length == 0 ? 1 : length;
  }
  return mended;
}

BadTextHandler SetBadTextHandler(BadTextHandler handler) {
  return bad_text.exchange(handler);
}

}  // namespace leat
