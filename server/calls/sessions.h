// SPDX-License-Identifier: Apache-2.0
//
// The handlers of WorkerSession and ConsumerSession streams.
//
// `peer_gone` returns, once the stream has ended, whether the peer vanished
// instead of closing it.
#pragma once

#include <functional>
#include <memory>

#include "core/clock.h"
#include "grpcpp/support/byte_buffer.h"
#include "leat/v1/coordinator.pb.h"
#include "rpc/call/stream.h"
#include "server/coordinator/coordinator.h"
#include "server/relays/sheet_relay.h"
#include "server/relays/span_relay.h"

namespace leat::server {

// `identity`: the caller's (rpc/access/access.h).
std::shared_ptr<rpc::StreamHandler<v1::WorkerSessionRequest>> MakeWorkerSession(
    Coordinator* coordinator, const Clock* clock, std::string identity,
    std::function<bool()> peer_gone,
    std::shared_ptr<rpc::Stream<v1::WorkerSessionResponse>> stream);

// Uses a raw method: all streams send the same bytes of an assignment. `spans`
// asks the consumer for its traces, `sheets` for rows to show.
std::shared_ptr<rpc::StreamHandler<grpc::ByteBuffer>> MakeConsumerSession(
    Coordinator* coordinator, const Clock* clock, SpanRelay* spans,
    SheetRelay* sheets, std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream);

// Bound on the messages that wait on one session's stream.
inline constexpr size_t kSessionQueue = 16;

}  // namespace leat::server
