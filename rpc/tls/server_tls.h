// SPDX-License-Identifier: Apache-2.0
//
// ServerTls has the certificates that a server presents and requires, which can
// be replaced while it serves. Existing connections keep theirs.
//
// Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/cluster/certificate_term.h"
#include "core/mutex.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"
#include "rpc/access/gate.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// kInvalidArgument: a file is not PEM, the key does not match the first
// certificate or has a passphrase, a certificate was not issued by the next
// one, OpenSSL finds a key or a signature too weak, or the first is for no host
// (without a subjectAltName). The message says which.
absl::Status CheckTls(const Security& security);
// kInvalidArgument: a certificate has expired, or is not valid yet. Says when.
absl::Status CheckDates(const Security& security, WallTime now);
// Checks that the certificate is valid for callers of `address` ("HOST:PORT").
// kInvalidArgument: it has other names; lists them. OK: there is no
// certificate.
absl::Status CheckName(const Security& security, std::string_view address);
// Returns the term of the certificate that expires first. nullopt: there are
// none.
std::optional<CertificateTerm> FirstToExpire(const Security& security);
// As CheckTls, but only for the roots to trust, if there are any.
absl::Status CheckRoots(const Security& security);

class ServerTls {
 public:
  // Errors: as CheckTls.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Create(
      const Security& security);

  // For one server, which is destroyed before this object.
  std::shared_ptr<grpc::ServerCredentials> Credentials(Gate gate);
  // Sets the certificates of new connections. Errors: as CheckTls and
  // CheckDates; kFailedPrecondition: it would change whether callers'
  // certificates are required. After an error the last good ones stay.
  absl::Status Replace(const Security& security);

 private:
  explicit ServerTls(const Security& security);
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  const bool asks_for_certificates_;
  Mutex mu_;
  std::string ca_ ABSL_GUARDED_BY(mu_);
  std::string cert_ ABSL_GUARDED_BY(mu_);
  std::string key_ ABSL_GUARDED_BY(mu_);
  bool fetched_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::rpc
