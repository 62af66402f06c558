// SPDX-License-Identifier: Apache-2.0
//
// Security: transport credentials and one's own token. Protocol version: both
// sides say theirs. Who may call what is Access's (rpc/access/access.h).
//
// Plaintext, and callers that nothing is known of, are for loopback and Unix
// sockets; any other listener needs TLS, and a token or callers' certificates,
// or `insecure` said aloud.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/roles.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_context.h"

namespace leat::rpc {

// Major.minor of the wire. Peers of another major version refuse each other.
inline constexpr std::string_view kProtocolVersion = "1.0";
// The version of all programs.
inline constexpr std::string_view kLeatVersion = "0.2.0";

// Which role a caller's certificate gives: by its subjectAltName of DNS or URI.
struct SanRole {
  std::string pattern;  // '*': anything but a dot (DNS) or a slash (URI)
  Role role = Role::kViewer;
};
// "spiffe://example.org/trainer/*=trainer" or "*.nodes.example.org=worker".
// kInvalidArgument: says what is wanted.
absl::StatusOr<SanRole> ParseSanRole(std::string_view text);
// DNS names are compared without regard to case.
bool Fits(const SanRole& rule, std::string_view name);

struct Security {
  std::string token;   // empty: none is asked for, none sent
  std::string ca_pem;  // client: roots to trust; server: as callers_ca() says
  // ca_pem is what the machine trusts: everybody who has a certificate for a
  // name of the internet. So it says nothing of callers.
  bool system_roots = false;
  std::string
      cert_pem;  // server: with key_pem turns TLS on; client: its certificate
  std::string key_pem;
  bool insecure = false;  // server: what is said above is meant
  // Server: the first that fits a certificate. None: a certificate is an
  // operator's.
  std::vector<SanRole> san_roles;

  // Server: roots of callers' certificates, which are asked for if there are
  // any.
  std::string_view callers_ca() const {
    return system_roots ? std::string_view() : ca_pem;
  }
  // kInvalidArgument: a certificate without a key, san_roles without
  // callers_ca().
  absl::Status Validate() const;
};

// "node1" of "node1:7411", "::1" of "[::1]:7411".
std::string_view HostIn(std::string_view address);
// True of "127.x", "[::1]", "localhost", "unix:", "unix-abstract:", "fd:".
bool IsLocal(std::string_view address);

// Whether a listener at `address` lets in what `insecure` is for.
bool IsExposed(const Security& security, std::string_view address);
// The first of `addresses` that is exposed although `insecure` lets it be;
// empty: there is none.
std::string InsecureListener(const Security& security,
                             std::initializer_list<std::string_view> addresses);
// kPermissionDenied: it is exposed, and `insecure` is not set.
absl::Status CheckListener(const Security& security, std::string_view address);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Security& security);

// The metadata that has the caller's access token.
inline constexpr char kTokenKey[] = "leat-token";

// Client: adds "leat-version" and "leat-token" to one call.
void AddMetadata(const Security& security, grpc::ClientContext* context);
// Server: what the caller shows; empty: nothing.
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
