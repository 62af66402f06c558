// SPDX-License-Identifier: Apache-2.0
//
// leat_health ADDRESS: what gRPC's health service says there: SERVING,
// NOT_SERVING, or an error and exit code 1.
#include <cstdio>
#include <string_view>

#include "core/status.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace leat {
namespace {

absl::StatusOr<std::string_view> Ask(const char* address) {
  grpc::GenericStub stub(rpc::MakeChannel(address, {}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
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
  return bytes.begin()[1] == 1 ? "SERVING" : "NOT_SERVING";
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::StatusOr<std::string_view> answer = leat::Ask(argv[1]);
  std::printf("%s\n", answer.ok() ? answer->data()
                                  : answer.status().ToString().c_str());
  return answer.ok() ? 0 : 1;
}
