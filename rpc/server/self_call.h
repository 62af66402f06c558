// SPDX-License-Identifier: Apache-2.0
//
// AskSelf: a server's health, asked by its own process over a new connection:
// through the kernel's queue, the acceptor and gRPC, as a stranger's call goes.
// Only TLS is left out: its certificates need not be good for their own server.
#pragma once

#include "core/clock.h"
#include "rpc/connections/acceptor.h"
#include "rpc/server/watchdog.h"

namespace leat::rpc {

// Any answer of the health service is one. kCouldNotAsk: no descriptor or port
// for the question, or the acceptor waits for descriptors: to end the process
// would cut off those whom it serves, and gain nothing.
Deafness::Answer AskSelf(Acceptor* acceptor, MonotonicTime deadline);

}  // namespace leat::rpc
