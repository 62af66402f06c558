// SPDX-License-Identifier: Apache-2.0
#include "worker/source/braces.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/redaction.h"
#include "core/status.h"

namespace leat::worker {
namespace {

using Texts = std::vector<std::string>;

std::optional<uint64_t> BoundOf(std::string_view digits) {
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// A single 0 is a number as any other.
bool IsPadded(std::string_view bound) {
  return bound.size() > 1 && bound.starts_with('0');
}

// Expands the text between two braces. nullopt: more than `most`. Empty: it is
// neither a range nor a list.
std::optional<Texts> Alternatives(std::string_view inside, size_t most) {
  Texts found;
  if (const size_t dots = inside.find("..");
      dots != std::string_view::npos && dots > 0) {
    const std::string_view begin = inside.substr(0, dots);
    const std::string_view end = inside.substr(dots + 2);
    const auto first = BoundOf(begin), last = BoundOf(end);
    if (first && last) {
      const uint64_t steps = *first < *last ? *last - *first : *first - *last;
      if (steps >= most) return std::nullopt;
      const size_t width = IsPadded(begin) || IsPadded(end)
                               ? std::max(begin.size(), end.size())
                               : 1;
      for (uint64_t i = 0; i <= steps; ++i)
        found.push_back(fmt::format(
            "{:0{}}", *first < *last ? *first + i : *first - i, width));
      return found;
    }
  }
  if (inside.find(',') == std::string_view::npos) return found;
  while (true) {
    const size_t comma = std::min(inside.find(','), inside.size());
    if (found.size() >= most) return std::nullopt;
    found.emplace_back(inside.substr(0, comma));
    if (comma == inside.size()) return found;
    inside.remove_prefix(comma + 1);
  }
}

}  // namespace

absl::StatusOr<Texts> ExpandBraces(std::string_view path, size_t most) {
  const auto too_many = [&] {
    return ResourceExhausted("{}: its braces stand for more than {} files",
                             RedactedUri(path), most);
  };
  Texts paths = {""};
  std::string_view rest = path;
  while (true) {
    const size_t open = rest.find('{');
    const size_t close = open == std::string_view::npos ? std::string_view::npos
                                                        : rest.find('}', open);
    if (close == std::string_view::npos) {
      for (std::string& each : paths) each += rest;
      return paths;
    }
    const std::string_view inside = rest.substr(open + 1, close - open - 1);
    if (inside.find('{') != std::string_view::npos)
      return InvalidArgument("{}: braces within braces: want a list of paths",
                             RedactedUri(path));
    std::optional<Texts> alternatives = Alternatives(inside, most);
    if (!alternatives) return too_many();
    if (alternatives->empty())
      alternatives->emplace_back(rest.substr(open, close + 1 - open));
    if (paths.size() * alternatives->size() > most) return too_many();
    Texts longer;
    for (const std::string& each : paths)
      for (const std::string& alternative : *alternatives)
        longer.push_back(
            fmt::format("{}{}{}", each, rest.substr(0, open), alternative));
    paths = std::move(longer);
    rest.remove_prefix(close + 1);
  }
}

}  // namespace leat::worker
