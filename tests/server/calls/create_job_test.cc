// SPDX-License-Identifier: Apache-2.0
//
// A CreateJob that waits: what its caller is told, and one that leaves.
#include "server/calls/create_job.h"

#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

TEST_F(ServiceTest, ACallThatWaitsIsToldWhatForBeforeItsAnswer) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = rpc::ToProto(SpecOf("waits", "/waits"));
  const auto context = client_->Context();
  const auto reader = client_->coordinator().CreateJob(context.get(), request);
  v1::CreateJobResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_THAT(response.waiting(), testing::HasSubstr("no worker is ready"));
  EXPECT_FALSE(response.has_job());
  FakeWorker worker(client_.get(), "a");
  ASSERT_TRUE(worker.Upload(worker.Asked(), "index").ok());
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.waiting(), "");
  EXPECT_EQ(response.job().spec().name(), "waits");
  EXPECT_FALSE(reader->Read(&response)) << "the answer is the last one";
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServiceTest, ACallerThatLeavesIsWaitedForNoMore) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = rpc::ToProto(SpecOf("left", "/left"));
  auto context = client_->Context();
  auto reader = client_->coordinator().CreateJob(context.get(), request);
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // Its answer finds the call over: the job of another caller is made.
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating = std::async(
      [&] { return client_->Create(SpecOf("left", "/left"), &created); });
  ASSERT_TRUE(worker.Upload(worker.Asked(), "index").ok());
  EXPECT_TRUE(creating.get().ok());
}

}  // namespace
}  // namespace leat::server
