// SPDX-License-Identifier: Apache-2.0
//
// Health asks a server's gRPC health service, over a connection of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rpc/call/auth.h"

namespace leat {

inline constexpr char kServing[] = "SERVING", kNotServing[] = "NOT_SERVING";

// Returns kServing or kNotServing. kUnavailable: there is no server, or it
// accepts no connection.
absl::StatusOr<std::string> Health(const std::string& address,
                                   const rpc::Security& security = {});

}  // namespace leat
