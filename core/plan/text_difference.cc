// SPDX-License-Identifier: Apache-2.0
#include "core/plan/text_difference.h"

#include <algorithm>
#include <string_view>

#include "core/redaction.h"
#include "core/utf8.h"
#include "fmt/format.h"

namespace leat {
namespace {

std::string_view Line(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

constexpr size_t kHead = 48, kBefore = 64, kAfter = 128;  // bytes shown

// Shows a line that differs from another at byte `at`.
std::string Excerpt(std::string_view line, size_t at) {
  if (line.size() <= kHead + kBefore + kAfter) return std::string(line);
  const size_t from = std::max(at, kHead + kBefore) - kBefore;
  const std::string_view shown = line.substr(from, kBefore + kAfter);
  return ToUtf8(fmt::format("{}{}{}{}", line.substr(0, kHead),
                            from > kHead ? " … " : "", shown,
                            from + shown.size() < line.size() ? " …" : ""));
}

}  // namespace

std::string TextDifference(const std::string& whole_a,
                           const std::string& whole_b) {
  const std::string a = Redacted(whole_a), b = Redacted(whole_b);
  if (a == b)
    return "pipelines differ in the user, password or query of an address";
  const size_t at =
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const size_t newline = at == 0 ? std::string::npos : a.rfind('\n', at - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  const auto show = [&](const std::string& text) {
    return begin < text.size() ? Excerpt(Line(text, begin), at - begin)
                               : "(end)";
  };
  return fmt::format("pipeline \"{}\" != \"{}\"", show(a), show(b));
}

}  // namespace leat
