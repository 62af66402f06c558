// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <mutex>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/channel_arguments.h"

namespace leat::rpc {
namespace {

// gRPC runs callbacks on threads of its own. It joins them when the last
// channel that used them goes, and aborts if that happens in one of their
// callbacks: as it does when a stream's end drops the last owner of its
// channel. A channel to nowhere, used once and never released, keeps the
// threads for the life of the process.
struct ThreadKeeper {
  grpc::GenericStub stub{
      grpc::CreateCustomChannel("", nullptr, grpc::ChannelArguments())};
  grpc::ClientContext context;
  const grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1};
  grpc::ByteBuffer response;
};

void KeepCallbackThreads() {
  static std::once_flag once;
  static ThreadKeeper* keeper = nullptr;
  std::call_once(once, [] {
    keeper = new ThreadKeeper;
    keeper->stub.UnaryCall(&keeper->context, "/", {}, &keeper->request,
                           &keeper->response, [](const grpc::Status&) {});
  });
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Security& security,
                                           int max_receive_bytes) {
  KeepCallbackThreads();
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(max_receive_bytes);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
              1000);  // also how long one attempt to connect may take
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, ChannelCredentials(security), args);
}

}  // namespace leat::rpc
