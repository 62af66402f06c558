// SPDX-License-Identifier: Apache-2.0
//
// Why the threads wait: for requests, for records, for room.
#include <memory>

#include "gtest/gtest.h"
#include "tests/worker/source/fake_storage.h"

namespace leat::worker {
namespace {

class SchedulerWaits : public ReadAheadTest {
 protected:
  // Sends requests until `grown` returns true, then returns both statistics.
  template <class Grown>
  std::pair<Scheduler::Stats, Scheduler::Stats> Until(const Grown& grown) {
    const Scheduler::Stats before = scheduler().stats();
    Scheduler::Stats after = before;
    while (!grown(before, after)) after = scheduler().stats();
    return {before, after};
  }
};

TEST_F(SchedulerWaits, ThreadsThatNobodyAsksAreIdle) {
  const auto [before, after] = Until([](const auto& a, const auto& b) {
    return b.decode_waits.idle_ns > a.decode_waits.idle_ns;
  });
  EXPECT_EQ(after.decode_waits.input_ns, 0u);
  EXPECT_EQ(after.decode_waits.output_ns, 0u);
}

TEST_F(SchedulerWaits, ThreadsWaitForTheirInputWhileStorageHoldsItUp) {
  storage_.Hold(0);
  Ask(Open(Job("a"), sink_), MakeRequest(1, 0, 0, 0, 1));
  storage_.WaitBegun(1);
  const auto [before, after] = Until([](const auto& a, const auto& b) {
    return b.decode_waits.input_ns > a.decode_waits.input_ns;
  });
  EXPECT_EQ(after.decode_waits.idle_ns, before.decode_waits.idle_ns);
  EXPECT_EQ(after.decode_waits.output_ns, before.decode_waits.output_ns);
  EXPECT_EQ(after.readers, 8);
  EXPECT_EQ(after.read_depth, 1u);
  storage_.ReleaseAll();
  sink_->WaitRows(1);
}

TEST_F(SchedulerWaits, JobsAreToldApart) {
  const auto of = [](const Scheduler::Stats& stats, const std::string& name) {
    for (const Scheduler::JobRows& job : stats.jobs)
      if (job.job == name) return job;
    return Scheduler::JobRows();
  };
  storage_.Hold(0);
  const auto reads = Open(Job("reads"), sink_);
  Ask(reads, MakeRequest(1, 0, 0, 0, 1));
  storage_.WaitBegun(1);
  const auto keeping = std::make_shared<FakeSink>();
  const auto sends = Open(std::make_shared<FakeWork>("sends"), keeping);
  Ask(sends, MakeRequest(1, 0, 0, 5000, 500));
  keeping->WaitRows(2);
  const auto [before, after] = Until([&](const auto& a, const auto& b) {
    return of(b, "reads").input_ns > of(a, "reads").input_ns &&
           of(b, "sends").output_ns > of(a, "sends").output_ns &&
           of(b, "reads").fetch_ns > of(a, "reads").fetch_ns;
  });
  EXPECT_EQ(of(after, "reads").output_ns, of(before, "reads").output_ns);
  EXPECT_EQ(of(after, "reads").thread_ns, of(before, "reads").thread_ns);
  EXPECT_EQ(of(after, "reads").groups_unsent, 0u);
  EXPECT_EQ(of(after, "sends").input_ns, 0u);
  EXPECT_EQ(of(after, "sends").fetch_ns, 0u);
  EXPECT_GT(of(after, "sends").groups_unsent, 0u);
  EXPECT_EQ(of(after, "sends").streams, 1u);
  storage_.ReleaseAll();
  scheduler().CloseStream(sends);
  EXPECT_EQ(of(scheduler().stats(), "sends").streams, 0u) << "it has ended";
}

TEST_F(SchedulerWaits, ThreadsWaitForRoomWhileNothingIsSent) {
  const auto keeping = std::make_shared<FakeSink>();
  const auto id = Open(std::make_shared<FakeWork>("a"), keeping);
  Ask(id, MakeRequest(1, 0, 0, 0, 500));
  const uint64_t limit = scheduler().stats().groups_unsent_limit;
  ASSERT_GT(limit, 0u);
  keeping->WaitRows(2 * limit);
  const auto [before, after] = Until([](const auto& a, const auto& b) {
    return b.decode_waits.output_ns > a.decode_waits.output_ns;
  });
  EXPECT_EQ(after.decode_waits.idle_ns, before.decode_waits.idle_ns);
  EXPECT_EQ(after.decode_waits.input_ns, before.decode_waits.input_ns);
  EXPECT_EQ(after.groups_unsent, limit);
  EXPECT_EQ(after.groups_sent_total, 0u);
  EXPECT_EQ(after.sending_ns_total, 0u);

  scheduler().CloseStream(id);
  EXPECT_EQ(keeping->Take().size(), limit);  // and releases them
  const Scheduler::Stats sent = scheduler().stats();
  EXPECT_EQ(sent.groups_unsent, 0u);
  EXPECT_EQ(sent.groups_sent_total, limit);
  EXPECT_GT(sent.sending_ns_total, 0u);
}

}  // namespace
}  // namespace leat::worker
