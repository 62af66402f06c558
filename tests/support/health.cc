// SPDX-License-Identifier: Apache-2.0
#include "tests/support/health.h"

#include <chrono>

#include "core/status.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"

namespace leat {

absl::StatusOr<std::string> Health(const std::string& address,
                                   const rpc::Security& security) {
  grpc::GenericStub stub(rpc::MakeChannel(address, security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", request, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return rpc::FromGrpc(status);
  grpc::Slice bytes;
  // HealthCheckResponse: field 1 is the status.
  if (!response.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2)
    return Internal("an answer of {} bytes", response.Length());
  return bytes.begin()[1] == 1 ? kServing : kNotServing;
}

}  // namespace leat
