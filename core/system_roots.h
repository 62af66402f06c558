// SPDX-License-Identifier: Apache-2.0
//
// Finds the certificate authorities that this machine trusts.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace leat {

// The value of a flag like --tls-ca that stands for them, in place of a path.
inline constexpr std::string_view kSystemRoots = "system";

// Returns `given` unless it is kSystemRoots. For kSystemRoots, returns the file
// that `ssl_cert_file` names (the variable SSL_CERT_FILE, as in OpenSSL; empty:
// not set), otherwise the first existing file of those that Debian, Fedora,
// SUSE and Alpine use, as reported by `exists`. kNotFound: there is none.
absl::StatusOr<std::string> RootsFile(
    std::string_view given, std::string_view ssl_cert_file,
    absl::FunctionRef<bool(const char* path)> exists);

}  // namespace leat
