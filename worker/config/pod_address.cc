// SPDX-License-Identifier: Apache-2.0
#include "worker/config/pod_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxDomain = 253 - 40;  // with the address before it

bool IsIp(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, port);
  return error == std::errc() && end == last && port > 0;
}

bool IsDomain(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDomain && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.';
         });
}

}  // namespace

absl::StatusOr<std::string> PodAddress(std::string_view advertise,
                                       std::string_view domain) {
  if (!IsDomain(domain))
    return InvalidArgument(
        "--pod-domain \"{}\": want SERVICE.NAMESPACE.svc.cluster.local",
        domain);
  const size_t colon = std::min(advertise.rfind(':'), advertise.size());
  std::string ip(advertise.substr(0, colon));
  if (ip.starts_with('[') && ip.ends_with(']'))
    ip = ip.substr(1, ip.size() - 2);
  const std::string_view port =
      advertise.substr(std::min(colon + 1, advertise.size()));
  if (!IsIp(ip) || !IsPort(port))
    return InvalidArgument(
        "--pod-domain {}: want the pod's address beside it, as --advertise "
        "10.1.2.3:7412, not \"{}\"",
        domain, advertise);
  std::replace_if(
      ip.begin(), ip.end(), [](char c) { return c == '.' || c == ':'; }, '-');
  return fmt::format("{}.{}:{}", ip, domain, port);
}

}  // namespace leat::worker
