// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/settling.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::HasSubstr;

// A job of 1,000 samples, at most 2 of them bad; two workers and a consumer.
class SettlingTest : public ::testing::Test {
 protected:
  SettlingTest() {
    a_ = world_.Join("a");
    b_ = world_.Join("b");
    JobSpec spec = SpecOf("j", "/d");
    spec.on_bad_sample = BadSamplePolicy::kReplace;
    spec.max_bad = 0.002;
    job_ = world_.MakeJob(spec, a_);
    consumer_ = world_.Open(*job_, "c");
  }
  // The number of the report that the worker is asked for now; 0: none.
  uint64_t Asked(SessionId worker) {
    uint64_t number = 0;
    for (const WorkerMessage& message : world_.Take(worker))
      if (const auto* report = std::get_if<ReportNow>(&message))
        number = report->number;
    return number;
  }
  void Answer(SessionId worker, uint64_t number,
              const std::vector<uint64_t>& samples = {}) {
    BadSampleReport report;
    report.plans.push_back({job_->plan_hash, samples});
    report.answers = number;
    ASSERT_TRUE(world_->Heartbeat(worker, {}, report, world_.now()).ok());
    world_.Write();
  }
  bool Settled(SessionId consumer) {
    return world_->NewsForConsumer(consumer).settled;
  }

  World world_;
  SessionId a_ = 0, b_ = 0, consumer_ = 0;
  std::shared_ptr<const JobInfo> job_;
};

TEST_F(SettlingTest, WhoIsAtItsEndIsSettledOnceAllWorkersHaveTold) {
  EXPECT_EQ(Asked(a_), 0u) << "before anybody is at the end";
  world_->SettleConsumer(consumer_);
  const uint64_t asked = Asked(a_);
  EXPECT_NE(asked, 0u);
  EXPECT_EQ(Asked(b_), asked);
  EXPECT_EQ(Asked(a_), 0u) << "asked twice";
  Answer(a_, asked, {1});
  Answer(b_, 0, {3});  // a heartbeat of before, or one without room
  EXPECT_FALSE(Settled(consumer_));
  Answer(b_, asked, {4});
  const Coordinator::JobNews news = world_->NewsForConsumer(consumer_);
  EXPECT_TRUE(news.settled);
  ASSERT_TRUE(news.failure.has_value()) << "before the end is told";
  EXPECT_THAT(std::string(Message(*news.failure)), HasSubstr("3 of 1000"));
  EXPECT_FALSE(Settled(consumer_)) << "told twice";
}

TEST_F(SettlingTest, AWorkerIsAskedAgainWhenItHasAnswered) {
  world_->SettleConsumer(consumer_);
  const uint64_t first = Asked(a_);
  Answer(b_, Asked(b_));
  const SessionId other = world_.Open(*job_, "other");
  world_->SettleConsumer(other);
  world_->SettleConsumer(other);  // once a session
  EXPECT_EQ(Asked(a_), 0u) << "it has not answered the first one";
  Answer(a_, first);
  EXPECT_TRUE(Settled(consumer_));
  EXPECT_FALSE(Settled(other));
  const uint64_t second = Asked(a_);
  EXPECT_EQ(second, first + 1);
  Answer(a_, second + 7);  // of no report that was asked for
  Answer(a_, second);
  EXPECT_EQ(Asked(b_), second);
  Answer(b_, second);
  EXPECT_TRUE(Settled(other));
}

TEST_F(SettlingTest, AConsumerIsWokenAndOneThatHasGoneIsForgotten) {
  int woken = 0;
  const SessionId waiting = *world_->OpenConsumer(
      {job_->plan_hash, "host", 1, "w", "j"}, world_.now(), [&] { ++woken; });
  world_->SettleConsumer(waiting);
  world_->SettleConsumer(consumer_);
  world_->CloseConsumer(consumer_, world_.now());
  world_.Write();
  const int before = woken;
  Answer(a_, Asked(a_));
  EXPECT_EQ(woken, before);
  Answer(b_, Asked(b_));
  EXPECT_EQ(woken, before + 1);
}

TEST_F(SettlingTest, AWorkerThatIsLostIsNotWaitedFor) {
  world_->SettleConsumer(consumer_);
  Answer(a_, Asked(a_));
  world_->CloseWorker(b_, /*left=*/false, world_.now());
  world_.Write();
  EXPECT_FALSE(Settled(consumer_)) << "it may come back and tell";
  for (int i = 0; i < 20; ++i) {
    world_.Advance(seconds(1));
    ASSERT_TRUE(world_.Beat(a_).ok());
  }
  EXPECT_TRUE(Settled(consumer_));
}

TEST_F(SettlingTest, WithoutWorkersThereIsNothingToWaitFor) {
  for (const SessionId worker : {a_, b_})
    world_->CloseWorker(worker, /*left=*/true, world_.now());
  world_->SettleConsumer(consumer_);
  EXPECT_TRUE(Settled(consumer_));
}

}  // namespace
}  // namespace leat::server
