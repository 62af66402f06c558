// SPDX-License-Identifier: Apache-2.0
#include "core/system_roots.h"

#include "core/status.h"

namespace leat {

absl::StatusOr<std::string> RootsFile(
    std::string_view given, std::string_view ssl_cert_file,
    absl::FunctionRef<bool(const char* path)> exists) {
  if (given != kSystemRoots) return std::string(given);
  if (!ssl_cert_file.empty()) return std::string(ssl_cert_file);
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt",
                           "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (exists(path)) return path;
  return NotFound(
      "this machine has no file of the authorities that it trusts: install "
      "ca-certificates, or let SSL_CERT_FILE name one");
}

}  // namespace leat
