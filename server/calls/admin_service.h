// SPDX-License-Identifier: Apache-2.0
//
// AdminService: leat.v1.AdminService over gRPC. It translates and forwards.
#pragma once

#include <functional>
#include <string_view>

#include "core/clock.h"
#include "leat/v1/admin.grpc.pb.h"
#include "rpc/access/access.h"
#include "server/calls/handle.h"
#include "server/coordinator/coordinator.h"
#include "server/views/status_view.h"

namespace leat::server {

class AdminService final : public v1::AdminService::CallbackService {
 public:
  // All pointers outlive it. `asks_for_tokens`: the daemon has an access token
  // of its own, so that further tokens restrict who may call.
  AdminService(Coordinator* coordinator, rpc::Access* access,
               bool asks_for_tokens, const Clock* clock)
      : coordinator_(coordinator),
        access_(access),
        asks_for_tokens_(asks_for_tokens),
        clock_(clock),
        view_(coordinator, clock) {}

  // Returns the source of GetStatus's answers; thread-safe.
  StatusView& view() { return view_; }

  UnaryReactor* GetStatus(CallContext* context,
                          const v1::GetStatusRequest* request,
                          v1::GetStatusResponse* response) override;
  UnaryReactor* ListWorkers(CallContext* context,
                            const v1::ListWorkersRequest* request,
                            v1::ListWorkersResponse* response) override;
  UnaryReactor* ListJobs(CallContext* context,
                         const v1::ListJobsRequest* request,
                         v1::ListJobsResponse* response) override;
  UnaryReactor* ListDatasets(CallContext* context,
                             const v1::ListDatasetsRequest* request,
                             v1::ListDatasetsResponse* response) override;
  UnaryReactor* ListShards(CallContext* context,
                           const v1::ListShardsRequest* request,
                           v1::ListShardsResponse* response) override;
  UnaryReactor* ListConsumers(CallContext* context,
                              const v1::ListConsumersRequest* request,
                              v1::ListConsumersResponse* response) override;
  UnaryReactor* GetBottleneck(CallContext* context,
                              const v1::GetBottleneckRequest* request,
                              v1::GetBottleneckResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(
      CallContext* context, const v1::WatchEventsRequest* request) override;
  UnaryReactor* MuteFinding(CallContext* context,
                            const v1::MuteFindingRequest* request,
                            v1::MuteFindingResponse* response) override;
  UnaryReactor* UnmuteFinding(CallContext* context,
                              const v1::UnmuteFindingRequest* request,
                              v1::UnmuteFindingResponse* response) override;
  UnaryReactor* DeleteJob(CallContext* context,
                          const v1::DeleteJobRequest* request,
                          v1::DeleteJobResponse* response) override;
  UnaryReactor* DeleteDataset(CallContext* context,
                              const v1::DeleteDatasetRequest* request,
                              v1::DeleteDatasetResponse* response) override;
  UnaryReactor* RefreshDataset(CallContext* context,
                               const v1::RefreshDatasetRequest* request,
                               v1::RefreshDatasetResponse* response) override;
  UnaryReactor* DrainWorker(CallContext* context,
                            const v1::DrainWorkerRequest* request,
                            v1::DrainWorkerResponse* response) override;
  UnaryReactor* UndrainWorker(CallContext* context,
                              const v1::UndrainWorkerRequest* request,
                              v1::UndrainWorkerResponse* response) override;
  UnaryReactor* SetLogLevel(CallContext* context,
                            const v1::SetLogLevelRequest* request,
                            v1::SetLogLevelResponse* response) override;
  UnaryReactor* CreateAccessToken(
      CallContext* context, const v1::CreateAccessTokenRequest* request,
      v1::CreateAccessTokenResponse* response) override;
  UnaryReactor* ListAccessTokens(
      CallContext* context, const v1::ListAccessTokensRequest* request,
      v1::ListAccessTokensResponse* response) override;
  UnaryReactor* RevokeAccessToken(
      CallContext* context, const v1::RevokeAccessTokenRequest* request,
      v1::RevokeAccessTokenResponse* response) override;

 private:
  Coordinator* const coordinator_;
  rpc::Access* const access_;
  const bool asks_for_tokens_;
  const Clock* const clock_;
  StatusView view_;
};

}  // namespace leat::server
