// SPDX-License-Identifier: Apache-2.0
//
// Security has transport credentials and the process's own token. Both sides
// also send their protocol version. Access decides who may call what
// (rpc/access/access.h).
//
// Plaintext and unauthenticated callers are permitted on loopback and Unix
// sockets; any other listener needs TLS, and a token or callers' certificates,
// or an explicit `insecure`.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/cluster/roles.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_context.h"

namespace leat::rpc {

// Major.minor of the wire. Peers of another major version refuse each other.
inline constexpr std::string_view kProtocolVersion = "1.0";
// The version of all programs.
inline constexpr std::string_view kLeatVersion = "0.2.0";

// The role that a caller's certificate gives, by its subjectAltName of type DNS
// or URI.
struct SanRole {
  std::string pattern;  // '*': any text without a dot (DNS) or a slash (URI)
  Role role = Role::kViewer;
};
// Parses "spiffe://example.org/trainer/*=trainer" or
// "*.nodes.example.org=worker". kInvalidArgument: the message says what is
// expected.
absl::StatusOr<SanRole> ParseSanRole(std::string_view text);
// Returns whether the name matches; DNS names are compared without regard to
// case.
bool Fits(const SanRole& rule, std::string_view name);

struct Security {
  std::string token;   // empty: none is required, none is sent
  std::string ca_pem;  // client: roots to trust; server: see callers_ca()
  // True if ca_pem has the roots that the machine trusts: then every owner of a
  // certificate for an internet name has one, so it does not identify callers.
  bool system_roots = false;
  std::string
      cert_pem;  // server: with key_pem turns TLS on; client: its certificate
  std::string key_pem;
  bool insecure = false;  // server: permits exposed listeners, see above
  // Server: the first rule that matches a certificate gives the role. If empty,
  // a certificate gives the role operator.
  std::vector<SanRole> san_roles;
  // The files that the three texts came from, for messages; empty: from none.
  std::string ca_file = {}, cert_file = {}, key_file = {};

  // Server: the roots of callers' certificates; if not empty, callers must
  // present one.
  std::string_view callers_ca() const {
    return system_roots ? std::string_view() : ca_pem;
  }
  // kInvalidArgument: a certificate without a key, san_roles without
  // callers_ca().
  absl::Status Validate() const;
};

// Returns "node1" for "node1:7411", "::1" for "[::1]:7411".
std::string_view HostIn(std::string_view address);
// Returns true for "127.x", "[::1]", "localhost", "unix:", "unix-abstract:",
// "fd:".
bool IsLocal(std::string_view address);

// Returns whether a listener at `address` is only permitted with `insecure`.
bool IsExposed(const Security& security, std::string_view address);
// Returns the first of `addresses` that is exposed because `insecure` is set;
// empty: there is none.
std::string InsecureListener(const Security& security,
                             std::initializer_list<std::string_view> addresses);
// kInvalidArgument: the listener is exposed, and `insecure` is not set.
absl::Status CheckListener(const Security& security, std::string_view address);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Security& security);

// How long a daemon accepts the token that was its own before the present one.
inline constexpr Duration kReplacedTokenAccepted = std::chrono::hours(24);

// The metadata key of the caller's access token.
inline constexpr char kTokenKey[] = "leat-token";

// Client: adds "leat-version" and "leat-token" to one call.
void AddMetadata(const Security& security, grpc::ClientContext* context);
// Server: returns the caller's token; empty: it has none.
std::string_view TokenOf(const grpc::ServerContextBase& context);
// kFailedPrecondition: the peer's major version differs; names both.
absl::Status CheckVersion(const grpc::ServerContextBase& context);
// kUnauthenticated: wrong or missing token (compared in constant time).
absl::Status CheckToken(const Security& security,
                        const grpc::ServerContextBase& context);
absl::Status CheckToken(const Security& security, std::string_view token);
// CheckToken and CheckVersion.
absl::Status CheckMetadata(const Security& security,
                           const grpc::ServerContextBase& context);

}  // namespace leat::rpc
