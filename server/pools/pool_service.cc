// SPDX-License-Identifier: Apache-2.0
#include "server/pools/pool_service.h"

#include <optional>

#include "core/status.h"
#include "rpc/call/grpc_status.h"
#include "server/pools/pool_watch.h"
#include "server/views/messages.h"

namespace leat::server {

grpc::ServerUnaryReactor* PoolService::ListPools(
    grpc::CallbackServerContext* context, const v1::ListPoolsRequest*,
    v1::ListPoolsResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status allowed =
      access_->Admit("PoolService/ListPools", *context).status();
  if (allowed.ok())
    for (const PoolView& view : coordinator_->Pools(clock_->Now()))
      *response->add_pools() = ToProto(view);
  reactor->Finish(rpc::ToGrpc(allowed));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchPoolResponse>* PoolService::WatchPool(
    grpc::CallbackServerContext* context, const v1::WatchPoolRequest* request) {
  using Told = absl::StatusOr<std::optional<v1::WatchPoolResponse>>;
  return PoolWatch<v1::WatchPoolResponse>::Start(
      coordinator_, access_, access_->Admit("PoolService/WatchPool", *context),
      request->name(), [](const PoolView& view) -> Told {
        v1::WatchPoolResponse response;
        *response.mutable_pool() = ToProto(view);
        return response;
      });
}

grpc::ServerUnaryReactor* PoolService::SetPool(
    grpc::CallbackServerContext* context, const v1::SetPoolRequest* request,
    v1::SetPoolResponse*) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (absl::Status allowed =
          access_->Admit("PoolService/SetPool", *context).status();
      !allowed.ok())
    reactor->Finish(rpc::ToGrpc(allowed));
  else
    coordinator_->SetPool(request->name(), {request->min(), request->max()},
                          [reactor](const absl::Status& result) {
                            reactor->Finish(rpc::ToGrpc(result));
                          });
  return reactor;
}

}  // namespace leat::server
