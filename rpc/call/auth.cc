// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/auth.h"

#include "absl/strings/ascii.h"
#include "core/status.h"
#include "openssl/crypto.h"

namespace leat::rpc {
namespace {

constexpr char kVersionKey[] = "leat-version";

std::string_view Major(std::string_view version) {
  return version.substr(0, version.find('.'));
}

std::string_view Find(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
    const char* key) {
  const auto it = metadata.find(key);
  return it == metadata.end()
             ? std::string_view()
             : std::string_view(it->second.data(), it->second.size());
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

absl::Status Security::Validate() const {
  if (cert_pem.empty() != key_pem.empty())
    return InvalidArgument(
        "TLS needs a certificate and its key: only the {} is given",
        cert_pem.empty() ? "key" : "certificate");
  if (!san_roles.empty() && (callers_ca().empty() || cert_pem.empty()))
    return InvalidArgument(
        "--role-from-san needs --tls-ca FILE, --tls-cert and --tls-key: else "
        "no "
        "caller shows a certificate");
  return absl::OkStatus();
}

absl::StatusOr<SanRole> ParseSanRole(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0)
    return InvalidArgument(
        "--role-from-san \"{}\": want PATTERN=ROLE, as "
        "spiffe://example.org/trainer/*=trainer",
        text);
  absl::StatusOr<Role> role = RoleFrom(text.substr(equals + 1));
  if (!role.ok())
    return Annotate(role.status(), fmt::format("--role-from-san \"{}\"", text));
  return SanRole{std::string(text.substr(0, equals)), *role};
}

// The text matched by the last star grows until the rest matches. A star before
// a separator is never revisited: it could not grow past the separator.
bool Fits(const SanRole& rule, std::string_view name) {
  const std::string_view pattern = rule.pattern;
  const bool uri = pattern.find("://") != pattern.npos;
  const char stop = uri ? '/' : '.';
  const auto same = [uri](char a, char b) {
    return uri ? a == b : absl::ascii_tolower(a) == absl::ascii_tolower(b);
  };
  size_t p = 0, n = 0, star = pattern.npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && same(pattern[p], name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos && name[taken] != stop) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view HostIn(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) {
    host.remove_prefix(1);
    host.remove_suffix(1);
  }
  return host;
}

// A name that merely begins with "127." may belong to any host.
bool IsLocal(std::string_view address) {
  for (std::string_view prefix :
       {"[::1]", "localhost:", "unix:", "unix-abstract:", "fd:"})
    if (StartsWith(address, prefix)) return true;
  const std::string_view host = address.substr(0, address.find(':'));
  return address == "localhost" ||
         (StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == host.npos);
}

bool IsExposed(const Security& security, std::string_view address) {
  if (IsLocal(address)) return false;
  return security.cert_pem.empty() ||
         (security.token.empty() && security.callers_ca().empty());
}

std::string InsecureListener(
    const Security& security,
    std::initializer_list<std::string_view> addresses) {
  if (!security.insecure) return "";
  for (std::string_view address : addresses)
    if (!address.empty() && IsExposed(security, address))
      return std::string(address);
  return "";
}

absl::Status CheckListener(const Security& security, std::string_view address) {
  RETURN_IF_ERROR(security.Validate());
  if (security.insecure || !IsExposed(security, address))
    return absl::OkStatus();
  if (security.cert_pem.empty())
    return InvalidArgument(
        "{} can be reached from other machines, and TLS is not set up: give "
        "--tls-cert and --tls-key, or --insecure if "
        "plaintext is meant",
        address);
  return InvalidArgument(
      "{} can be reached from other machines, and everybody would be let in: "
      "give --access-token-file, or --tls-ca for callers' certificates, or "
      "--insecure if that is meant",
      address);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Security& security) {
  if (security.ca_pem.empty() && security.cert_pem.empty())
    return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials(
      {security.ca_pem, security.key_pem, security.cert_pem});
}

void AddMetadata(const Security& security, grpc::ClientContext* context) {
  context->AddMetadata(kVersionKey, std::string(kProtocolVersion));
  if (!security.token.empty()) context->AddMetadata(kTokenKey, security.token);
}

std::string_view TokenOf(const grpc::ServerContextBase& context) {
  return Find(context.client_metadata(), kTokenKey);
}

absl::Status CheckVersion(const grpc::ServerContextBase& context) {
  const std::string_view version = Find(context.client_metadata(), kVersionKey);
  if (Major(version) != Major(kProtocolVersion))
    return FailedPrecondition(
        "the caller speaks protocol version {}, this service {}: install "
        "matching releases",
        version.empty() ? "none" : version.substr(0, 32), kProtocolVersion);
  return absl::OkStatus();
}

absl::Status CheckToken(const Security& security,
                        const grpc::ServerContextBase& context) {
  return CheckToken(security, TokenOf(context));
}

absl::Status CheckToken(const Security& security, std::string_view token) {
  if (!security.token.empty() &&
      (token.size() != security.token.size() ||
       CRYPTO_memcmp(token.data(), security.token.data(), token.size()) != 0))
    return Unauthenticated(
        "{} access token: give one of this service by --access-token-file or "
        "LEAT_ACCESS_TOKEN; an operator makes it with \"leat access create\"",
        token.empty() ? "no" : "wrong");
  return absl::OkStatus();
}

absl::Status CheckMetadata(const Security& security,
                           const grpc::ServerContextBase& context) {
  RETURN_IF_ERROR(CheckToken(security, context));
  return CheckVersion(context);
}

}  // namespace leat::rpc
