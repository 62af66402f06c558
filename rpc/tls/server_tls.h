// SPDX-License-Identifier: Apache-2.0
//
// ServerTls: the certificates that a server shows and asks for, which can be
// exchanged while it serves. Connections that are there keep theirs.
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
#include "core/mutex.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"
#include "rpc/access/gate.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// kInvalidArgument: a file is not PEM, the key is not the first certificate's,
// or it has a passphrase, a certificate was not issued by the next one, or the
// first is for no host (without a subjectAltName). Says which.
absl::Status CheckTls(const Security& security);
// kInvalidArgument: a certificate is expired, or not valid yet. Says when.
absl::Status CheckDates(const Security& security, WallTime now);
// Whether callers of `address` ("HOST:PORT") take the certificate for it.
// kInvalidArgument: it has other names; says which. OK: there is none.
absl::Status CheckName(const Security& security, std::string_view address);
// When the first of the certificates expires. nullopt: there are none.
std::optional<WallTime> CertificateExpiry(const Security& security);
// The same of the roots to trust alone, if there are any.
absl::Status CheckRoots(const Security& security);

class ServerTls {
 public:
  // Errors: as CheckTls.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Create(
      const Security& security);

  // For one server, which ends before this object.
  std::shared_ptr<grpc::ServerCredentials> Credentials(Gate gate);
  // Shown to connections from now on. Errors: as CheckTls and CheckDates;
  // kFailedPrecondition: callers' certificates were asked for and would not be
  // any more, or the other way round. After an error the last good ones stay.
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
