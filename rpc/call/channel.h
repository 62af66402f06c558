// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// A channel with a TCP connection of its own (streams that share one share its
// limit), keepalive, reconnect backoff of 0.1–2 s, and no limit on what it
// receives but `max_receive_bytes`. Does not connect yet.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Security& security,
                                           int max_receive_bytes = 8 << 20);

}  // namespace leat::rpc
