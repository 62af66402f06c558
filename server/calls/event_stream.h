// SPDX-License-Identifier: Apache-2.0
//
// The call WatchEvents: reads the coordinator's events and writes them, page by
// page. It holds one page; a slow client gets the next page later, and is told
// how many events were forgotten meanwhile.
#pragma once

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/admin.pb.h"
#include "rpc/access/access.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// Parses a request. kInvalidArgument names an invalid subject or time.
absl::StatusOr<EventQuery> EventQueryOf(const v1::WatchEventsRequest& request,
                                        uint64_t instance, WallTime now);

// Deletes itself when the call is over. All arguments except `request` outlive
// it. Ends when the caller's token is revoked.
grpc::ServerWriteReactor<v1::WatchEventsResponse>* StartWatchEvents(
    Coordinator* coordinator, rpc::Access* access,
    const absl::StatusOr<rpc::Caller>& caller,
    const v1::WatchEventsRequest& request, WallTime now);

}  // namespace leat::server
