// SPDX-License-Identifier: Apache-2.0
//
// PoolService over real sockets.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class PoolServiceTest : public ServiceTest {
 protected:
  grpc::Status Set(const std::string& name, uint32_t min, uint32_t max) {
    v1::SetPoolRequest request;
    request.set_name(name);
    request.set_min(min);
    request.set_max(max);
    v1::SetPoolResponse response;
    return client_->pools().SetPool(client_->Context().get(), request,
                                    &response);
  }
};

TEST_F(PoolServiceTest, WatchersAreToldAtOnceAndOfEachChange) {
  const auto context = client_->Context(60);
  v1::WatchPoolRequest request;
  request.set_name("cpu");
  const auto stream = client_->pools().WatchPool(context.get(), request);
  v1::WatchPoolResponse told;
  ASSERT_TRUE(stream->Read(&told));
  EXPECT_EQ(told.pool().max(), 0u);
  ASSERT_TRUE(Set("cpu", 2, 5).ok());
  ASSERT_TRUE(stream->Read(&told));
  EXPECT_EQ(told.pool().min(), 2u);
  EXPECT_EQ(told.pool().max(), 5u);
  EXPECT_EQ(told.pool().desired(), 2u);
  EXPECT_GT(told.pool().version(), 0u);
  EXPECT_THAT(told.pool().reason(), HasSubstr("bounds"));
  v1::ListPoolsResponse list;
  ASSERT_TRUE(
      client_->pools().ListPools(client_->Context().get(), {}, &list).ok());
  ASSERT_EQ(list.pools_size(), 1);
  EXPECT_EQ(list.pools(0).name(), "cpu");
  // The stream ends with the coordinator.
  daemon_->Drain();
  EXPECT_FALSE(stream->Read(&told));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(PoolServiceTest, AWatcherThatGoesIsForgotten) {
  for (int i = 0; i < 1100; ++i) {  // more than may watch at a time
    const auto context = client_->Context(60);
    v1::WatchPoolRequest request;
    request.set_name("cpu");
    const auto stream = client_->pools().WatchPool(context.get(), request);
    v1::WatchPoolResponse told;
    ASSERT_TRUE(stream->Read(&told)) << i;
    context->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  }
}

TEST_F(PoolServiceTest, WhatIsWrongIsNamed) {
  const grpc::Status name = Set("a b", 1, 2);
  EXPECT_EQ(name.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(name.error_message(), HasSubstr("a b"));
  EXPECT_EQ(Set("cpu", 3, 2).error_code(), StatusCode::INVALID_ARGUMENT);
  const auto context = client_->Context();
  v1::WatchPoolRequest request;
  const auto stream = client_->pools().WatchPool(context.get(), request);
  v1::WatchPoolResponse told;
  EXPECT_FALSE(stream->Read(&told));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(PoolServiceTest, AWorkersPoolIsKnown) {
  FakeWorker worker(client_.get(), "w");
  worker.Next();
  v1::ListPoolsResponse list;
  ASSERT_TRUE(
      client_->pools().ListPools(client_->Context().get(), {}, &list).ok());
  ASSERT_EQ(list.pools_size(), 1);
  EXPECT_EQ(list.pools(0).name(), "default");
  EXPECT_EQ(list.pools(0).workers(), 1u);
  EXPECT_EQ(client_->Status().workers(0).pool(), "default");
}

}  // namespace
}  // namespace leat::server
