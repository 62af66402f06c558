// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// Makes a channel with its own TCP connection (streams on one connection share
// its flow control), keepalive, reconnect backoff of 0.1–2 s, and no limit on
// received messages except `max_receive_bytes`. Does not connect yet.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Security& security,
                                           int max_receive_bytes = 8 << 20);

}  // namespace leat::rpc
