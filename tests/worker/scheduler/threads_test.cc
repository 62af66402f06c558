// SPDX-License-Identifier: Apache-2.0
//
// Tests a system that gives no threads.
#include <string>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/compute/thread_lack.h"
#include "tests/worker/source/fake_storage.h"
#include "worker/source/each_file.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

class SchedulerThreadsTest : public ReadAheadTest {};

TEST_F(SchedulerThreadsTest, WithoutDecodeThreadsItDoesNotStart) {
  const NoThreads lack;
  const Scheduler scheduler(options_, &pool_, wake_, Clock::Real());
  EXPECT_TRUE(absl::IsResourceExhausted(scheduler.started()));
  EXPECT_THAT(std::string(Message(scheduler.started())), HasSubstr("decode-0"));
}

TEST_F(SchedulerThreadsTest,
       WithoutReadThreadsTheStreamIsRefusedUntilThereAre) {
  ASSERT_TRUE(scheduler().started().ok());
  {
    const NoThreads lack;
    const absl::Status refused =
        scheduler().OpenStream(Job("a"), sink_).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_EQ(FaultOf(refused), Fault::kWorker);
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("read-0"));
  }
  const Scheduler::StreamId id = Open(Job("a"), sink_);
  Ask(id, MakeRequest(1, 0, 0, 0, 4));
  sink_->WaitRows(4);
}

TEST_F(SchedulerThreadsTest, AListingGoesOnWithTheThreadThatWantsIt) {
  const NoThreads lack;
  int listed = 0;
  const absl::Status status =
      ForEachIndex(10, 8, nullptr, [&](size_t) -> absl::Status {
        ++listed;
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(listed, 10);
}

}  // namespace
}  // namespace leat::worker
