// SPDX-License-Identifier: Apache-2.0
//
// The files that a daemon's flags name: the token, keys and certificates.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// Paths; empty: none.
struct TlsFiles {
  std::string cert;  // --tls-cert
  std::string key;   // --tls-key
  std::string ca;    // --tls-ca; or "system" (core/system_roots.h)
};
// The file that `ca` stands for; empty: none.
std::string CaFileOf(const TlsFiles& files);

// The access token in a file (TokenIn). Errors name the flag and the path:
// kNotFound, kPermissionDenied, kInvalidArgument: empty, larger than 4 KiB, or
// no token of kMinOwnToken characters at least.
absl::StatusOr<std::string> ReadAccessToken(const std::string& path);
// kInvalidArgument if the environment has a LEAT_TOKEN (null or empty: it has
// none). A daemon that ignored it would let everybody in whom it was set to
// keep out.
absl::Status RefuseOtherTokens(const char* leat_token);
// Sets the three texts of `security` to what the files say now, and whether
// the roots are the system's. After an error
// it is as it was. Errors: as ReadAccessToken, with 1 MiB.
absl::Status ReadTls(const TlsFiles& files, Security* security);

}  // namespace leat::rpc
