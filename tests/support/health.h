// SPDX-License-Identifier: Apache-2.0
//
// What gRPC's health service says of a server, over a connection of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rpc/auth.h"

namespace leat {

inline constexpr char kServing[] = "SERVING", kNotServing[] = "NOT_SERVING";

// One of the two. kUnavailable: there is no server, or it takes no connection.
absl::StatusOr<std::string> Health(const std::string& address,
                                   const rpc::Security& security = {});

}  // namespace leat
