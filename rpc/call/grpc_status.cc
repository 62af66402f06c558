// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/grpc_status.h"

#include "core/status.h"
#include "core/utf8.h"

namespace leat::rpc {
namespace {

constexpr size_t kMaxMessageBytes = 4096;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      ToUtf8(Message(status), kMaxMessageBytes));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known =
      code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(
      known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
      ToUtf8(status.error_message(), kMaxMessageBytes));
}

}  // namespace leat::rpc
