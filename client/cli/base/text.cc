// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/text.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "absl/strings/escaping.h"
#include "core/plan/plan.h"
#include "core/printable.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

size_t Columns(uint32_t c) {
  if ((c >= 0x300 && c <= 0x36F) || c == 0x200B || c == 0x200D) return 0;
  const bool wide =
      (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
      (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
      (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
      (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
      c >= 0x20000;
  return wide ? 2 : 1;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const std::optional<CodePoint> c = DecodeUtf8(text);
    width += c ? Columns(c->value) : 1;
    text.remove_prefix(c ? c->bytes : 1);
  }
  return width;
}

std::string Clip(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string out;
  size_t used = 1;  // the ellipsis
  while (!text.empty()) {
    const std::optional<CodePoint> c = DecodeUtf8(text);
    const size_t bytes = c ? c->bytes : 1;
    used += c ? Columns(c->value) : 1;
    if (used > width) break;
    out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out + "…";
}

std::string ClipMiddle(std::string_view text, size_t width) {
  const size_t all = DisplayWidth(text);
  if (all <= width || width < 3) return Clip(text, width);
  const size_t tail = (width - 1) / 2;
  std::string_view end = text;
  for (size_t left = all; left > tail;) {  // no character is cut in two
    const std::optional<CodePoint> c = DecodeUtf8(end);
    left -= c ? Columns(c->value) : 1;
    end.remove_prefix(c ? c->bytes : 1);
  }
  return Clip(text, width - DisplayWidth(end)) + std::string(end);
}

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (width == 0 ||
               DisplayWidth(line) + 1 + DisplayWidth(word) <= width) {
      line += ' ';
      line += word;
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

std::string Rate(double value) {
  if (value <= 0) return "0";
  return value < 100 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}

std::string Percent(double fraction) {
  return fmt::format("{:.1f}", 100 * std::clamp(fraction, 0.0, 1.0));
}

std::string OfSteps(uint64_t step, std::string_view separator, uint64_t steps) {
  return steps == kStreamSteps ? fmt::format("{}", step)
                               : fmt::format("{}{}{}", step, separator, steps);
}

std::string Mebibytes(uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return fmt::format("{:.1f}", mebibytes);
}

std::string Size(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit < 5; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string Age(absl::Duration age) {
  const int64_t s = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  if (s < 120) return fmt::format("{}s", s);
  if (s < 2 * 3600) return fmt::format("{}m", s / 60);
  const int64_t hours = s / 3600;
  if (hours < 48) return fmt::format("{}h{}m", hours, s / 60 % 60);
  return fmt::format("{}d{}h", hours / 24, hours % 24);
}

std::string JoinFew(const std::vector<std::string>& names, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    out += (i == 0 ? "" : ",") + names[i];
  }
  if (names.size() > most) out += fmt::format(",+{}", names.size() - most);
  return out;
}

namespace {

// Keeps so many digits of the fraction; without any it has no point either.
std::string CutFraction(std::string_view rfc3339, size_t digits) {
  std::string text(rfc3339);
  const size_t point = text.find('.');
  if (point != std::string_view("2026-11-21T02:00:00").size()) return text;
  size_t end = point + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const size_t from = digits == 0 ? point : std::min(end, point + 1 + digits);
  return text.erase(from, end - from);
}

}  // namespace

std::string TimeText(std::string_view rfc3339) {
  return CutFraction(rfc3339, 0);
}

std::string MillisecondsText(std::string_view rfc3339) {
  return CutFraction(rfc3339, 3);
}

std::string AgeSince(std::string_view rfc3339, absl::Time now) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full,
                       absl::string_view(rfc3339.data(), rfc3339.size()), &time,
                       &error)) {
    return "-";
  }
  return Age(now - time);
}

std::string EnumWord(std::string_view value, std::string_view prefix) {
  if (value.starts_with(prefix)) value.remove_prefix(prefix.size());
  std::string word(value);
  for (char& c : word) {
    c = c == '_' ? ' '
                 : static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  }
  return word;
}

std::string HexOfBase64(std::string_view base64) {
  std::string bytes;
  if (!absl::Base64Unescape(absl::string_view(base64.data(), base64.size()),
                            &bytes)) {
    return std::string(base64);
  }
  return absl::BytesToHexString(bytes);
}

std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace leat::cli
