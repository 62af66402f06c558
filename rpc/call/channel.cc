// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/channel.h"

#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "rpc/call/client_events.h"

namespace leat::rpc {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Security& security,
                                           int max_receive_bytes) {
  StartClientEvents();
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(max_receive_bytes);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
              1000);  // also the time limit of one attempt to connect
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, ChannelCredentials(security), args);
}

}  // namespace leat::rpc
