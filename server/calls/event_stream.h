// SPDX-License-Identifier: Apache-2.0
//
// The call WatchEvents: reads the coordinator's events and writes them, page by
// page. It holds one page; whoever takes it slowly reads the next one later,
// and is told what was forgotten meanwhile.
#pragma once

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/admin.pb.h"
#include "rpc/access/access.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// Reads what a request asks for. kInvalidArgument names a wrong subject or
// time.
absl::StatusOr<EventQuery> EventQueryOf(const v1::WatchEventsRequest& request,
                                        uint64_t instance, WallTime now);

// Deletes itself when the call is over. What it is given outlives it, but for
// `request`. Ends when the caller's token is revoked.
grpc::ServerWriteReactor<v1::WatchEventsResponse>* StartWatchEvents(
    Coordinator* coordinator, rpc::Access* access,
    const absl::StatusOr<rpc::Caller>& caller,
    const v1::WatchEventsRequest& request, WallTime now);

}  // namespace leat::server
