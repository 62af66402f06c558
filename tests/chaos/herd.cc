// SPDX-License-Identifier: Apache-2.0
//
// leat_herd ADDRESS COUNT: so many clients, each with a connection of its own,
// ask a server's health at once, and stay connected until all have their
// answer. Prints how many got one, and after how many seconds the last did.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "grpcpp/generic/generic_stub.h"
#include "rpc/call/channel.h"

namespace leat {
namespace {

struct Client {
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call;
  grpc::ByteBuffer response;
  grpc::Status status;
};

void Run(const char* address, size_t count) {
  const auto begin = std::chrono::steady_clock::now();
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < count; ++i) {
    Client& client = *clients.emplace_back(std::make_unique<Client>());
    client.stub =
        std::make_unique<grpc::GenericStub>(rpc::MakeChannel(address, {}));
    client.context.set_wait_for_ready(true);
    client.context.set_deadline(std::chrono::system_clock::now() +
                                std::chrono::seconds(60));
    client.call = client.stub->PrepareUnaryCall(
        &client.context, "/grpc.health.v1.Health/Check", request, &queue);
    client.call->StartCall();
    client.call->Finish(&client.response, &client.status, &client);
  }
  size_t answered = 0;
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < count && queue.Next(&tag, &ok); ++i)
    if (static_cast<const Client*>(tag)->status.ok()) ++answered;
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf("%zu %.2f\n", answered, took.count());
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  leat::Run(argv[1], std::strtoul(argv[2], nullptr, 10));
}
