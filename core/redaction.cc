// SPDX-License-Identifier: Apache-2.0
//
// A text is divided at "://":
//
//   readers.parquet path=texts["https://u:p@h/x?sig=1","/data"]
//                              ^ scheme begins        ^ address ends
//
// In quotes an address may contain spaces, commas and brackets, since canonical
// texts quote whole values.
#include "core/redaction.h"

#include <algorithm>
#include <cctype>

namespace leat {
namespace {

constexpr std::string_view kSeparator = "://";

bool IsOfScheme(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' ||
         c == '-' || c == '.';
}

bool EndsAddress(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' ||
         c == '<' || c == '>' || c == ')' || c == ',';
}

// Returns the position of the closing quote, which is not escaped.
size_t EndOfQuoted(std::string_view text, char quote) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i;
    }
  }
  return std::string_view::npos;
}

constexpr size_t kMaxPort = 5;  // digits

// Text after a colon that is not a port is the rest of a password in which a
// character was not escaped: "https://user:/word@host". `ports`: the scheme has
// some; a bucket has none.
std::string_view WithoutOddPort(std::string_view host, bool ports) {
  const size_t after =
      host.starts_with('[') ? host.rfind(']') + 1 : 0;  // [::1]
  const size_t colon = host.find(':', after);
  if (colon == std::string_view::npos) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool sound = ports && !port.empty() && port.size() <= kMaxPort &&
                     std::all_of(port.begin(), port.end(), [](char c) {
                       return std::isdigit(static_cast<unsigned char>(c)) != 0;
                     });
  return sound ? host : host.substr(0, colon);
}

}  // namespace

std::string SchemeOf(std::string_view uri) {
  const size_t end = uri.find(kSeparator);
  if (end == std::string_view::npos || end == 0) return "";
  std::string scheme;
  for (const char c : uri.substr(0, end)) {
    if (!IsOfScheme(c)) return "";
    scheme += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return scheme;
}

std::string RedactedUri(std::string_view uri) {
  const std::string scheme = SchemeOf(uri);
  if (scheme.empty() || scheme == "file") return std::string(uri);
  const bool keyed = scheme == "s3" || scheme == "gs";
  const size_t begin = scheme.size() + kSeparator.size();
  const std::string_view kept =
      keyed ? uri : uri.substr(0, uri.find_first_of("?#", begin));
  const size_t path = std::min(kept.find('/', begin), kept.size());
  std::string_view host = kept.substr(begin, path - begin);
  const size_t at = host.rfind('@');
  if (at != std::string_view::npos) host.remove_prefix(at + 1);
  // "https://user:123/word@host" could be a path with an '@' at a host's port.
  const bool may_have_port =
      !keyed && (at != std::string_view::npos ||
                 uri.find('@', path) == std::string_view::npos);
  const std::string_view sound = WithoutOddPort(host, may_have_port);
  std::string out(uri.substr(0, begin));
  out += sound;
  if (sound.size() == host.size()) out += kept.substr(path);
  return out;
}

std::string Redacted(std::string_view text) {
  std::string out;
  while (true) {
    const size_t separator = text.find(kSeparator);
    if (separator == std::string_view::npos) return out.append(text);
    size_t begin = separator;
    while (begin > 0 && IsOfScheme(text[begin - 1])) --begin;
    out += text.substr(0, begin);
    const char before = begin > 0 ? text[begin - 1] : ' ';
    text.remove_prefix(begin);
    size_t end = std::string_view::npos;
    if (before == '"' || before == '\'') end = EndOfQuoted(text, before);
    if (end == std::string_view::npos)
      end = static_cast<size_t>(
          std::find_if(text.begin() + (separator - begin) + kSeparator.size(),
                       text.end(), EndsAddress) -
          text.begin());
    out += RedactedUri(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size()));
  }
}

}  // namespace leat
