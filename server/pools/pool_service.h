// SPDX-License-Identifier: Apache-2.0
//
// PoolService: leat.v1.PoolService over gRPC. It translates and forwards.
#pragma once

#include "core/clock.h"
#include "leat/v1/pool.grpc.pb.h"
#include "rpc/access/access.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

class PoolService final : public v1::PoolService::CallbackService {
 public:
  // All pointers outlive it.
  PoolService(Coordinator* coordinator, rpc::Access* access, const Clock* clock)
      : coordinator_(coordinator), access_(access), clock_(clock) {}

  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext* context,
                                      const v1::ListPoolsRequest* request,
                                      v1::ListPoolsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchPoolResponse>* WatchPool(
      grpc::CallbackServerContext* context,
      const v1::WatchPoolRequest* request) override;
  grpc::ServerUnaryReactor* SetPool(grpc::CallbackServerContext* context,
                                    const v1::SetPoolRequest* request,
                                    v1::SetPoolResponse* response) override;

 private:
  Coordinator* const coordinator_;
  rpc::Access* const access_;
  const Clock* const clock_;
};

}  // namespace leat::server
