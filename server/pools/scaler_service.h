// SPDX-License-Identifier: Apache-2.0
//
// ScalerService: externalscaler.ExternalScaler over gRPC, which KEDA calls. It
// translates and forwards.
//
// KEDA's operator sends no Leat version and no token: its calls are identified
// by certificate; without client authentication any caller is accepted.
#pragma once

#include "externalscaler/externalscaler.grpc.pb.h"
#include "rpc/access/access.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

class ScalerService final
    : public externalscaler::ExternalScaler::CallbackService {
 public:
  // Both outlive it.
  ScalerService(Coordinator* coordinator, rpc::Access* access)
      : coordinator_(coordinator), access_(access) {}

  grpc::ServerUnaryReactor* IsActive(
      grpc::CallbackServerContext* context,
      const externalscaler::ScaledObjectRef* request,
      externalscaler::IsActiveResponse* response) override;
  grpc::ServerWriteReactor<externalscaler::IsActiveResponse>* StreamIsActive(
      grpc::CallbackServerContext* context,
      const externalscaler::ScaledObjectRef* request) override;
  grpc::ServerUnaryReactor* GetMetricSpec(
      grpc::CallbackServerContext* context,
      const externalscaler::ScaledObjectRef* request,
      externalscaler::GetMetricSpecResponse* response) override;
  grpc::ServerUnaryReactor* GetMetrics(
      grpc::CallbackServerContext* context,
      const externalscaler::GetMetricsRequest* request,
      externalscaler::GetMetricsResponse* response) override;

 private:
  Coordinator* const coordinator_;
  rpc::Access* const access_;
};

}  // namespace leat::server
