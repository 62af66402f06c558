// SPDX-License-Identifier: Apache-2.0
//
// Security: transport credentials and the shared token. Protocol version: both
// sides say theirs.
//
// Plaintext is for loopback and Unix sockets; any other listener needs TLS, or
// `insecure` said aloud.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_context.h"

namespace leat::rpc {

// Major.minor of the wire. Peers of another major version refuse each other.
inline constexpr std::string_view kProtocolVersion = "1.0";
// Of the programs.
inline constexpr std::string_view kLeatVersion = "0.1.0";

struct Security {
  std::string token;   // empty: none is asked for, none sent
  std::string ca_pem;  // client: roots to trust; server: roots of client
                       // certificates (asks for them if set)
  std::string
      cert_pem;  // server: with key_pem turns TLS on; client: its certificate
  std::string key_pem;
  bool insecure = false;  // server: plaintext beyond loopback is meant

  // kInvalidArgument: a certificate without a key, ...
  absl::Status Validate() const;
};

// True of "127.x", "[::1]", "localhost", "unix:", "unix-abstract:".
bool IsLocal(std::string_view address);

// kPermissionDenied: `address` is not local, and neither TLS nor `insecure` is
// set.
absl::Status CheckListener(const Security& security, std::string_view address);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
    const Security& security);

// Client: adds "leat-version" and "leat-token" to one call.
void AddMetadata(const Security& security, grpc::ClientContext* context);
// Server: first line of every handler. kUnauthenticated: wrong or missing token
// (compared in constant time). kFailedPrecondition: the peer's major version
// differs; names both.
absl::Status CheckMetadata(const Security& security,
                           const grpc::ServerContextBase& context);

}  // namespace leat::rpc
