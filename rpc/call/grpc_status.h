// SPDX-License-Identifier: Apache-2.0
//
// Converts absl::Status <-> grpc::Status. The codes are the same numbers;
// messages are kept, cut to 4 KiB and made valid UTF-8.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace leat::rpc {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace leat::rpc
