// SPDX-License-Identifier: Apache-2.0
//
// What gRPC writes to its own log becomes events of this process's:
//
//   E1128 09:41:23 17466 server.cc:12] out of ports
//   ─► grpc.log severity=E at=server.cc:12 text="out of ports"
//
// and of too many in a while the number alone. gRPC tells of a handshake that
// failed without a word of who called: that is kept for
// UnauthenticatedConnections, which knows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace leat::rpc {

// Does so from now on; a second call changes nothing. GRPC_VERBOSITY and
// GRPC_TRACE say what gRPC tells at all (errors, where neither is set); where
// one of them is set, nothing of that is held back. A failed handshake is an
// event of level debug in any case.
void LogGrpc();

// Why the last handshake failed on this side as gRPC told it, if that was less
// than a second before `now`. It is told once.
std::optional<std::string> TakeFailedHandshake(MonotonicTime now);

// For people: what OpenSSL says of the other side. "peer did not return a
// certificate" ─► "it shows no certificate, and --tls-ca wants one".
std::string HandshakeText(std::string_view grpc_text);

}  // namespace leat::rpc
