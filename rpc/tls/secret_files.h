// SPDX-License-Identifier: Apache-2.0
//
// Reads the files that a daemon's flags name: the token, keys and certificates.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// Paths; empty: not set.
struct TlsFiles {
  std::string cert;  // --tls-cert
  std::string key;   // --tls-key
  std::string ca;    // --tls-ca; or "system" (core/system_roots.h)
};
// Returns the file for `ca`; empty: none.
std::string CaFileOf(const TlsFiles& files);

// Reads the access token in a file (TokenIn). Errors name the flag and the
// path: kNotFound, kPermissionDenied, kInvalidArgument: empty, larger than 4
// KiB, or not a token of at least kMinOwnToken characters.
absl::StatusOr<std::string> ReadAccessToken(const std::string& path);
// kInvalidArgument if the environment has a LEAT_TOKEN (nullptr or empty: it
// has none). A daemon that ignored it would admit the callers that it was set
// to keep out.
absl::Status RefuseOtherTokens(const char* leat_token);
// Sets the three texts of `security` from the current files, the files' names,
// and whether the roots are the system's. After an error `security` is
// unchanged. Errors: as ReadAccessToken, with 1 MiB.
absl::Status ReadTls(const TlsFiles& files, Security* security);

}  // namespace leat::rpc
