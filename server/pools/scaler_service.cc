// SPDX-License-Identifier: Apache-2.0
#include "server/pools/scaler_service.h"

#include <optional>
#include <string>

#include "core/status.h"
#include "rpc/call/grpc_status.h"
#include "server/pools/pool_watch.h"

namespace leat::server {
namespace {

constexpr std::string_view kMetric = "leat_pool_desired_workers";

// Returns the trigger's pool; empty: it names none, and no pool is called so.
std::string PoolOf(const externalscaler::ScaledObjectRef& object) {
  const auto found = object.scaler_metadata().find("pool");
  return found == object.scaler_metadata().end() ? "" : found->second;
}

absl::Status WithHint(const absl::Status& status,
                      const externalscaler::ScaledObjectRef& object) {
  return absl::IsInvalidArgument(status) && PoolOf(object).empty()
             ? Annotate(status, "want the trigger's metadata \"pool\"")
             : status;
}

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* ScalerService::IsActive(
    grpc::CallbackServerContext* context,
    const externalscaler::ScaledObjectRef* request,
    externalscaler::IsActiveResponse* response) {
  absl::Status status =
      access_->AdmitForeign("ExternalScaler/IsActive", *context).status();
  if (status.ok()) {
    const absl::StatusOr<PoolView> view =
        coordinator_->DecidedPool(PoolOf(*request));
    status = WithHint(view.status(), *request);
    if (view.ok()) response->set_result(view->target.desired > 0);
  }
  return Finish(context, status);
}

grpc::ServerWriteReactor<externalscaler::IsActiveResponse>*
ScalerService::StreamIsActive(grpc::CallbackServerContext* context,
                              const externalscaler::ScaledObjectRef* request) {
  using Told = absl::StatusOr<std::optional<externalscaler::IsActiveResponse>>;
  const auto tell =
      [last = std::optional<bool>()](const PoolView& view) mutable -> Told {
    if (view.bounds.max == 0)
      return FailedPrecondition("pool \"{}\": {}", view.name,
                                view.target.reason);
    const bool active = view.target.desired > 0;
    if (last == active) return std::nullopt;
    last = active;
    externalscaler::IsActiveResponse response;
    response.set_result(active);
    return response;
  };
  return PoolWatch<externalscaler::IsActiveResponse>::Start(
      coordinator_, access_,
      access_->AdmitForeign("ExternalScaler/StreamIsActive", *context),
      PoolOf(*request), tell);
}

grpc::ServerUnaryReactor* ScalerService::GetMetricSpec(
    grpc::CallbackServerContext* context,
    const externalscaler::ScaledObjectRef* request,
    externalscaler::GetMetricSpecResponse* response) {
  absl::Status status =
      access_->AdmitForeign("ExternalScaler/GetMetricSpec", *context).status();
  // The metric is known also before any decision, so that KEDA creates its
  // autoscaler.
  if (status.ok()) status = WithHint(CheckPoolName(PoolOf(*request)), *request);
  if (status.ok()) {
    externalscaler::MetricSpec* const spec = response->add_metric_specs();
    spec->set_metric_name(std::string(kMetric));
    spec->set_target_size(1);
    spec->set_target_size_float(1);
  }
  return Finish(context, status);
}

grpc::ServerUnaryReactor* ScalerService::GetMetrics(
    grpc::CallbackServerContext* context,
    const externalscaler::GetMetricsRequest* request,
    externalscaler::GetMetricsResponse* response) {
  absl::Status status =
      access_->AdmitForeign("ExternalScaler/GetMetrics", *context).status();
  if (status.ok() && request->metric_name() != kMetric)
    status = NotFound("metric \"{}\": want {}",
                      request->metric_name().substr(0, 64), kMetric);
  if (status.ok()) {
    const absl::StatusOr<PoolView> view =
        coordinator_->DecidedPool(PoolOf(request->scaled_object_ref()));
    status = WithHint(view.status(), request->scaled_object_ref());
    if (view.ok()) {
      externalscaler::MetricValue* const value = response->add_metric_values();
      value->set_metric_name(std::string(kMetric));
      value->set_metric_value(view->target.desired);
      value->set_metric_value_float(view->target.desired);
    }
  }
  return Finish(context, status);
}

}  // namespace leat::server
