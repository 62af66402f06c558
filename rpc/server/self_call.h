// SPDX-License-Identifier: Apache-2.0
//
// AskSelf checks a server's health from its own process over a new connection:
// through the kernel's queue, the acceptor and gRPC, as an external call. Only
// TLS is omitted: the server's certificates need not be valid for itself.
#pragma once

#include "core/clock.h"
#include "rpc/connections/acceptor.h"
#include "rpc/server/watchdog.h"

namespace leat::rpc {

// Any answer of the health service counts. kCouldNotAsk: no descriptor or port
// is available for the call, or the acceptor waits for descriptors: ending the
// process would then only disconnect its callers.
Deafness::Answer AskSelf(Acceptor* acceptor, MonotonicTime deadline);

}  // namespace leat::rpc
