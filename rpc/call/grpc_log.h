// SPDX-License-Identifier: Apache-2.0
//
// Turns the lines of gRPC's own log into events of this process's log:
//
//   E1128 09:41:23 17466 server.cc:12] out of ports
//   ─► grpc.log severity=E at=server.cc:12 text="out of ports"
//
// If there are too many in a period, only their number is logged. gRPC reports
// a failed handshake without the caller's address: such a line is kept for
// UnauthenticatedConnections, which knows the address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace leat::rpc {

// Starts to do so; a second call has no effect. GRPC_VERBOSITY and GRPC_TRACE
// determine what gRPC logs (errors, if neither is set); if one of them is set,
// no line is suppressed. A failed handshake is in any case an event of level
// debug.
void LogGrpc();

// Returns why gRPC reported the last handshake on this side to have failed, if
// that was less than a second before `now`. Each reason is returned once.
std::optional<std::string> TakeFailedHandshake(MonotonicTime now);

// Translates OpenSSL's description of the other side for people. "peer did not
// return a certificate" ─► "it shows no certificate, and --tls-ca wants one".
std::string HandshakeText(std::string_view grpc_text);

}  // namespace leat::rpc
