// SPDX-License-Identifier: Apache-2.0
//
// Where this machine keeps the authorities that it trusts.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace leat {

// What a flag like --tls-ca is given in place of a path.
inline constexpr std::string_view kSystemRoots = "system";

// Returns `given`, or for kSystemRoots the file that `ssl_cert_file` names (the
// variable SSL_CERT_FILE, as OpenSSL has it; empty: not set), else the first
// of which `exists` is true of those where Debian, Fedora, SUSE and Alpine have
// it. kNotFound: there is none.
absl::StatusOr<std::string> RootsFile(
    std::string_view given, std::string_view ssl_cert_file,
    absl::FunctionRef<bool(const char* path)> exists);

}  // namespace leat
