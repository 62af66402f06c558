// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/call_set.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "rpc/call/channel.h"

namespace leat::rpc {
namespace {

// Calls that wait for a server which does not exist.
class CallSetTest : public ::testing::Test {
 protected:
  grpc::StatusCode Hello(CallSet* calls, Duration timeout) {
    CallSet::Call call(calls, security_, timeout);
    call.context.set_wait_for_ready(true);
    v1::HelloResponse response;
    return stub_->Hello(&call.context, {}, &response).error_code();
  }

  const Security security_{};
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_ =
      v1::CoordinatorService::NewStub(
          MakeChannel("unix:/no/such/socket", security_));
};

TEST_F(CallSetTest, StopEndsCallsInProgressAndLaterOnes) {
  CallSet calls;
  std::thread waiting([&] {
    EXPECT_EQ(Hello(&calls, Duration::max()), grpc::StatusCode::CANCELLED);
  });
  while (calls.size() == 0) std::this_thread::yield();
  EXPECT_FALSE(calls.stopped());
  calls.Stop();
  waiting.join();
  EXPECT_TRUE(calls.stopped());
  EXPECT_EQ(calls.size(), 0u);
  EXPECT_EQ(Hello(&calls, Duration::max()), grpc::StatusCode::CANCELLED);
}

TEST_F(CallSetTest, ACallEndsWithItsTimeout) {
  CallSet calls;
  EXPECT_EQ(Hello(&calls, std::chrono::milliseconds(1)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace leat::rpc
