// SPDX-License-Identifier: Apache-2.0
//
// Gate decides, when the headers of a call have arrived, whether the call is
// admitted. gRPC calls a handler only when the first message has arrived; until
// then a call with a few bytes of headers takes some 20 KB, and an unidentified
// caller may open thousands. A rejected call is answered and freed at once.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"

namespace leat::rpc {

// `path`: "/leat.v1.AdminService/GetStatus". `token`: from the call's metadata;
// empty: none. Called by many threads.
using Gate =
    std::function<absl::Status(std::string_view path, std::string_view token)>;

// Takes ownership of `credentials`. If `gate` is empty, every call is admitted.
std::shared_ptr<grpc::ServerCredentials> WithGate(
    grpc_server_credentials* credentials, Gate gate);

}  // namespace leat::rpc
