// SPDX-License-Identifier: Apache-2.0
//
// ExternalScaler over real sockets, as KEDA's operator calls it: without a
// version and without a token.
#include "externalscaler/externalscaler.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/certificate_maker.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

using externalscaler::ExternalScaler;
using externalscaler::GetMetricsResponse;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;
using grpc::StatusCode;
using testing::HasSubstr;

constexpr char kDesired[] = "leat_pool_desired_workers";

std::unique_ptr<grpc::ClientContext> Plain() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(30));
  return context;
}

ScaledObjectRef Object(const std::string& pool) {
  ScaledObjectRef object;
  object.set_name("leat-worker");
  object.set_namespace_("leat");
  if (!pool.empty()) (*object.mutable_scaler_metadata())["pool"] = pool;
  return object;
}

class ScalerTest : public ServiceTest {
 protected:
  // A service without authentication of callers.
  void SetUp() override {
    config_.security.token.clear();
    Start();
    scaler_ = ExternalScaler::NewStub(rpc::MakeChannel(daemon_->address(), {}));
  }
  void Bounds(uint32_t min, uint32_t max) {
    v1::SetPoolRequest request;
    request.set_name("cpu");
    request.set_min(min);
    request.set_max(max);
    v1::SetPoolResponse response;
    ASSERT_TRUE(client_->pools()
                    .SetPool(client_->Context().get(), request, &response)
                    .ok());
  }
  grpc::Status Metrics(const std::string& pool, const std::string& metric,
                       GetMetricsResponse* response) {
    externalscaler::GetMetricsRequest request;
    *request.mutable_scaled_object_ref() = Object(pool);
    request.set_metric_name(metric);
    return scaler_->GetMetrics(Plain().get(), request, response);
  }
  grpc::Status Active(const std::string& pool, IsActiveResponse* response) {
    return scaler_->IsActive(Plain().get(), Object(pool), response);
  }

  std::unique_ptr<ExternalScaler::Stub> scaler_;
};

TEST_F(ScalerTest, TellsHowManyWorkersThereShouldBe) {
  Bounds(3, 5);
  externalscaler::GetMetricSpecResponse spec;
  ASSERT_TRUE(scaler_->GetMetricSpec(Plain().get(), Object("cpu"), &spec).ok());
  ASSERT_EQ(spec.metric_specs_size(), 1);
  EXPECT_EQ(spec.metric_specs(0).metric_name(), kDesired);
  EXPECT_EQ(spec.metric_specs(0).target_size(), 1);
  EXPECT_EQ(spec.metric_specs(0).target_size_float(), 1);
  // Decided by the coordinator's own thread, at once.
  GetMetricsResponse metrics;
  while (Metrics("cpu", kDesired, &metrics).error_code() ==
         StatusCode::UNAVAILABLE)
    std::this_thread::yield();
  ASSERT_EQ(metrics.metric_values_size(), 1);
  EXPECT_EQ(metrics.metric_values(0).metric_name(), kDesired);
  EXPECT_EQ(metrics.metric_values(0).metric_value(), 3);
  EXPECT_EQ(metrics.metric_values(0).metric_value_float(), 3);
  IsActiveResponse active;
  ASSERT_TRUE(Active("cpu", &active).ok());
  EXPECT_TRUE(active.result());
}

TEST_F(ScalerTest, AStreamIsToldAtOnceAndOfEachChange) {
  Bounds(0, 5);
  const auto context = Plain();
  const auto stream = scaler_->StreamIsActive(context.get(), Object("cpu"));
  IsActiveResponse told;
  ASSERT_TRUE(stream->Read(&told));
  EXPECT_FALSE(told.result());
  Bounds(2, 5);
  ASSERT_TRUE(stream->Read(&told));
  EXPECT_TRUE(told.result());
  Bounds(3, 5);  // the message does not change
  Bounds(0, 0);
  EXPECT_FALSE(stream->Read(&told));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(end.error_message(), HasSubstr("leat pool set cpu"));
}

TEST_F(ScalerTest, WhatIsWrongIsNamed) {
  GetMetricsResponse metrics;
  IsActiveResponse active;
  const grpc::Status none = Active("", &active);
  EXPECT_EQ(none.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(none.error_message(), HasSubstr("metadata \"pool\""));
  EXPECT_EQ(Active("a b", &active).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Metrics("cpu", "cpu", &metrics).error_code(),
            StatusCode::NOT_FOUND);
  for (const grpc::Status& status :
       {Active("cpu", &active), Metrics("cpu", kDesired, &metrics)}) {
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("leat pool set cpu"));
  }
  const auto context = Plain();
  const auto stream = scaler_->StreamIsActive(context.get(), Object(""));
  EXPECT_FALSE(stream->Read(&active));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ScalerTest, WatchersAreBoundedAndForgotten) {
  Bounds(1, 5);
  for (int i = 0; i < 1100; ++i) {  // more than may watch at a time
    const auto context = Plain();
    const auto stream = scaler_->StreamIsActive(context.get(), Object("cpu"));
    IsActiveResponse told;
    ASSERT_TRUE(stream->Read(&told)) << i;
    context->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  }
}

TEST_F(ScalerTest, ACertificatesRoleLetsItIn) {
  const rpc::MadeCertificate root(
      {.name = "root", .names = "", .authority = true});
  const rpc::MadeCertificate own({}, &root);
  config_.listen = "localhost:0";
  config_.security = {
      .ca_pem = root.pem(), .cert_pem = own.pem(), .key_pem = own.key_pem()};
  config_.security.token = "the-operators-first-token";
  config_.security.san_roles = {{"spiffe://leat/viewer/*", Role::kViewer},
                                {"spiffe://leat/worker", Role::kWorker}};
  daemon_ = *Daemon::Start(config_, &Clock::Real());
  const std::pair<const char*, StatusCode> table[] = {
      {"URI:spiffe://leat/viewer/keda", StatusCode::FAILED_PRECONDITION},
      {"URI:spiffe://leat/worker", StatusCode::PERMISSION_DENIED},
      {"URI:spiffe://leat/other", StatusCode::UNAUTHENTICATED}};
  for (const auto& [names, code] : table) {
    const rpc::MadeCertificate caller({.name = "keda", .names = names}, &root);
    scaler_ = ExternalScaler::NewStub(
        rpc::MakeChannel(daemon_->address(), {.ca_pem = root.pem(),
                                              .cert_pem = caller.pem(),
                                              .key_pem = caller.key_pem()}));
    IsActiveResponse active;
    EXPECT_EQ(Active("cpu", &active).error_code(), code) << names;
    const auto context = Plain();
    const auto stream = scaler_->StreamIsActive(context.get(), Object("cpu"));
    EXPECT_FALSE(stream->Read(&active));
    EXPECT_EQ(stream->Finish().error_code(), code) << names;
  }
}

TEST_F(ScalerTest, ATokenIsAskedForWhereThereIsOne) {
  config_.security.token = "the-operators-first-token";
  Start();
  scaler_ = ExternalScaler::NewStub(rpc::MakeChannel(daemon_->address(), {}));
  IsActiveResponse active;
  EXPECT_EQ(Active("cpu", &active).error_code(), StatusCode::UNAUTHENTICATED);
  const auto context = Plain();
  context->AddMetadata("leat-token", "the-operators-first-token");
  EXPECT_EQ(
      scaler_->IsActive(context.get(), Object("cpu"), &active).error_code(),
      StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace leat::server
