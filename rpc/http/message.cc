// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace leat::rpc {
namespace {

constexpr size_t kMaxHost = 255;
constexpr std::string_view kBearer = "bearer ";

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool EqualWords(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNameCharacter(char c) {
  return (Lower(c) >= 'a' && Lower(c) <= 'z') || IsDigit(c) || c == '-' ||
         c == '.' || c == '_';
}

// Accepts "HOST", "HOST:PORT", "[V6]" and "[V6]:PORT"; nullopt: none of these.
std::optional<std::string> HostOfHeader(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return std::nullopt;
  std::string_view host, rest;
  if (text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (!std::all_of(host.begin(), host.end(), [](char c) {
          return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'f') ||
                 c == ':' || c == '.';
        }))
      return std::nullopt;
  } else {
    host = text.substr(0, text.find(':'));
    rest = text.substr(host.size());
    if (!std::all_of(host.begin(), host.end(), IsNameCharacter))
      return std::nullopt;
  }
  if (host.empty()) return std::nullopt;
  if (!rest.empty() && (rest.front() != ':' ||
                        !std::all_of(rest.begin() + 1, rest.end(), IsDigit)))
    return std::nullopt;
  return std::string(host);
}

bool IsIpAddress(const std::string& host) {
  std::array<uint8_t, 16> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char low = Lower(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// Text that is not an escape is unchanged.
std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded +=
          static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

bool IsLoopback(std::string_view host) {
  return EqualWords(host, "localhost") || host.starts_with("127.") ||
         host == "::1";
}

}  // namespace

std::string_view BearerToken(std::string_view authorization) {
  if (authorization.size() <= kBearer.size() ||
      !EqualWords(authorization.substr(0, kBearer.size()), kBearer))
    return {};
  authorization.remove_prefix(kBearer.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  while (authorization.ends_with(' ')) authorization.remove_suffix(1);
  return authorization;
}

bool IsOwnOrigin(std::string_view fetch_site, std::string_view origin,
                 std::string_view host) {
  if (!fetch_site.empty())
    return fetch_site == "same-origin" || fetch_site == "none";
  if (origin.empty()) return true;
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme))
      return EqualWords(origin.substr(scheme.size()), host);
  return false;
}

std::string_view CookieIn(std::string_view cookies, std::string_view name) {
  std::string_view found;
  while (!cookies.empty()) {
    std::string_view one = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), one.size() + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (!one.starts_with(name) || !one.substr(name.size()).starts_with('='))
      continue;
    if (!found.empty()) return {};
    found = one.substr(name.size() + 1);
  }
  return found;
}

std::string FormValue(std::string_view form, std::string_view name) {
  while (!form.empty()) {
    const std::string_view one = form.substr(0, form.find('&'));
    form.remove_prefix(std::min(form.size(), one.size() + 1));
    if (one.substr(0, one.find('=')) != name || one.size() <= name.size())
      continue;
    return PercentDecoded(one.substr(name.size() + 1));
  }
  return "";
}

bool IsHostOf(std::string_view host, std::string_view address) {
  const std::optional<std::string> asked = HostOfHeader(host),
                                   own = HostOfHeader(address);
  if (!asked || !own) return false;
  return !IsLoopback(*own) || IsIpAddress(*asked) ||
         EqualWords(*asked, "localhost") || EqualWords(*asked, *own);
}

}  // namespace leat::rpc
