// SPDX-License-Identifier: Apache-2.0
//
// Gate: asks of each call, when its headers have come, whether it may stay.
// gRPC asks a handler when the first message has come; until then a call of a
// few bytes of headers holds some 20 KB, and a caller that nobody knows may
// open thousands. One that may not stay is answered and forgotten at once.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"

namespace leat::rpc {

// `path`: "/leat.v1.AdminService/GetStatus". `token`: of the call's metadata;
// empty: none. Called by many threads.
using Gate =
    std::function<absl::Status(std::string_view path, std::string_view token)>;

// `credentials` are taken over. `gate` empty: every call may stay.
std::shared_ptr<grpc::ServerCredentials> WithGate(
    grpc_server_credentials* credentials, Gate gate);

}  // namespace leat::rpc
