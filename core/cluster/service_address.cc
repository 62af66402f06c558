// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/service_address.h"

#include <charconv>
#include <cstdint>
#include <string>

#include "core/status.h"

namespace leat {
namespace {

constexpr std::string_view kSchemes[] = {
    "unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:", "vsock:"};

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && at == end && port >= 1 && port <= 65535;
}

}  // namespace

absl::Status CheckServiceAddress(std::string_view what,
                                 std::string_view address) {
  for (const std::string_view scheme : kSchemes)
    if (address.starts_with(scheme)) return absl::OkStatus();
  const auto want = [&](std::string_view meant) {
    return InvalidArgument("{} \"{}\": want HOST:PORT{}", what, address, meant);
  };
  if (const size_t scheme = address.find("://");
      scheme != std::string_view::npos)
    return want(fmt::format(", without {}", address.substr(0, scheme + 3)));
  const size_t colon = address.rfind(':');
  if (address.empty() || colon == 0) return want("");
  const bool bracketed = address.starts_with('[');
  if (colon == std::string_view::npos || (bracketed && address.ends_with(']')))
    return want(fmt::format(", such as {}:7411", address));
  if (!bracketed && address.find(':') != colon)
    return want("; an IPv6 address stands in brackets: [::1]:7411");
  if (!IsPort(address.substr(colon + 1)))
    return want(", with a port of 1 to 65535");
  return absl::OkStatus();
}

}  // namespace leat
