// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/bad_sample_ledger.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator/coordinator.h"
#include "tests/server/coordinator/parts/mixture.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SampleSet, CountsEachSampleOnce) {
  SampleSet set;
  for (const uint64_t sample :
       {uint64_t{0}, uint64_t{63}, uint64_t{64}, uint64_t{4095}, uint64_t{4096},
        uint64_t{1} << 40}) {
    EXPECT_TRUE(set.Insert(sample));
    EXPECT_FALSE(set.Insert(sample));
  }
  EXPECT_EQ(set.size(), 6u);
}

// A job of 1,000 samples, at most 2 of them bad, and two workers.
class BudgetTest : public ::testing::Test {
 protected:
  BudgetTest() {
    a_ = world_.Join("a");
    b_ = world_.Join("b");
    job_ = world_.MakeJob(Spec("j", 0.002), a_);
    consumer_ = world_.Open(*job_, "c");
  }
  static JobSpec Spec(const std::string& name, std::optional<double> max_bad) {
    JobSpec spec = SpecOf(name, "/d");
    spec.on_bad_sample = BadSamplePolicy::kReplace;
    spec.max_bad = max_bad;
    return spec;
  }
  void Report(SessionId worker, const std::vector<uint64_t>& samples) {
    BadSampleReport report;
    report.jobs.push_back({"j", {}});
    for (const uint64_t sample : samples)
      report.jobs[0].samples.push_back(
          BadSampleOf(sample, fmt::format("cat/{}.jpg", sample), "truncated"));
    report.plans.push_back({job_->plan_hash, samples});
    ASSERT_TRUE(world_->Heartbeat(worker, {}, report, world_.now()).ok());
    world_.Write();
  }
  // Returns the error that its consumer gets; OK: none.
  absl::Status Told(SessionId consumer) {
    return world_->NewsForConsumer(consumer).failure.value_or(absl::OkStatus());
  }

  World world_;
  SessionId a_ = 0, b_ = 0, consumer_ = 0;
  std::shared_ptr<const JobInfo> job_;
};

TEST_F(BudgetTest, DifferentSamplesOfAllWorkersAndEpochsAreSummed) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    Report(a_, {7});
    Report(b_, {7, 9});
  }
  EXPECT_TRUE(Told(consumer_).ok()) << "as many as may be";
  EXPECT_EQ(world_->Jobs()[0].bad_samples_different, 2u);
  EXPECT_EQ(world_->Jobs()[0].bad_samples_allowed, 2u);
  EXPECT_FALSE(world_.Found("JOB_GIVEN_UP"));
  Report(a_, {12});
  const absl::Status told = Told(consumer_);
  EXPECT_TRUE(absl::IsDataLoss(told)) << told;
  EXPECT_THAT(
      std::string(Message(told)),
      AllOf(HasSubstr("job j: 3 of 1000 samples are bad"),
            HasSubstr("max_bad 0.002 allows 2"),
            HasSubstr("cat/7.jpg: truncated"), HasSubstr("cat/12.jpg")));
  EXPECT_TRUE(Told(consumer_).ok()) << "told twice";
  EXPECT_EQ(world_->Jobs()[0].failure, Message(told));
  EXPECT_EQ(world_.SummaryOf("JOB_GIVEN_UP"), Message(told));
}

TEST_F(BudgetTest, ConsumersThatWaitAreWokenAndLaterOnesAreToldAtOnce) {
  int woken = 0;
  const SessionId waiting = *world_->OpenConsumer(
      {job_->plan_hash, "host", 1, "w", "j"}, world_.now(), [&] { ++woken; });
  world_.Write();
  const int before = woken;
  Report(a_, {1, 2, 3});
  EXPECT_EQ(woken, before + 1);
  EXPECT_FALSE(Told(waiting).ok());
  EXPECT_FALSE(Told(world_.Open(*job_, "later")).ok());
}

TEST_F(BudgetTest, JobsOfOnePlanHaveBudgetsOfTheirOwn) {
  const auto loose = world_.MakeJob(Spec("loose", 0.5), a_);
  const auto any = world_.MakeJob(Spec("any", std::nullopt), a_);
  ASSERT_EQ(loose->plan_hash, job_->plan_hash);
  ASSERT_EQ(any->plan_hash, job_->plan_hash);
  const auto open = [&](const std::string& job) {
    return *world_->OpenConsumer({job_->plan_hash, "host", 1, "x" + job, job},
                                 world_.now(), [] {});
  };
  Report(a_, {1, 2, 3});
  EXPECT_FALSE(Told(open("j")).ok());
  EXPECT_TRUE(Told(open("loose")).ok());
  EXPECT_TRUE(Told(open("any")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(
      world_.Create(Spec("loose", 0.6))->value().status()));
}

TEST_F(BudgetTest, AJobThatIsMadeAgainBeginsAnew) {
  Report(a_, {1, 2, 3});
  EXPECT_FALSE(Told(consumer_).ok());
  ASSERT_TRUE(world_.DeleteJob("j").ok());
  job_ = world_.MakeJob(Spec("j", 0.003), a_);
  const SessionId consumer = world_.Open(*job_, "again");
  Report(b_, {1, 2, 3});
  EXPECT_TRUE(Told(consumer).ok());
  Report(b_, {4});
  EXPECT_FALSE(Told(consumer).ok());
}

TEST_F(BudgetTest, AConsumerIsNotToldOfAnotherJobThatGotTheName) {
  ASSERT_TRUE(world_.DeleteJob("j").ok());
  JobSpec other = Spec("j", 0.002);
  ++other.seed;
  job_ = world_.MakeJob(other, a_);
  const SessionId consumer = world_.Open(*job_, "other");
  Report(a_, {1, 2, 3});
  EXPECT_FALSE(Told(consumer).ok());
  EXPECT_TRUE(Told(consumer_).ok());
  // The job's position is not where the other one's consumer ends.
  ASSERT_TRUE(
      world_->ReportConsumer(consumer_, {.epoch = 2, .step = 7}, world_.now())
          .ok());
  for (const SessionId each : {consumer, consumer_})
    world_->CloseConsumer(each, world_.now());
  EXPECT_FALSE(world_->Jobs().at(0).position_at.has_value());
}

TEST_F(BudgetTest, SamplesThatTheDatasetHasNotAreNotCounted) {
  Report(a_, {1, 1000, 1001, ~uint64_t{0}});
  EXPECT_EQ(world_->Jobs()[0].bad_samples_different, 1u);
  EXPECT_TRUE(Told(consumer_).ok());
}

// The second source's samples follow the 1,000 of the first.
TEST(BadSamplesOfAMixture, AreToldByTheirSource) {
  World world;
  const SessionId a = world.Join("a");
  JobSpec spec = MixtureOf("mix", {"web", "books"});
  spec.on_bad_sample = BadSamplePolicy::kZero;
  spec.max_bad = 0;
  const auto job = MakeMixture(world, spec, a);
  ASSERT_NE(job, nullptr);
  BadSampleReport report;
  report.jobs.push_back({"mix",
                         {BadSampleOf(1007, "/books/7.jpg", "no JPEG"),
                          BadSampleOf(3, "/web/3.jpg", "no JPEG"),
                          BadSampleOf(9999, "?", "no such sample")}});
  report.jobs[0].samples[0].set_source("a worker's own idea");
  report.plans.push_back({job->plan_hash, {3, 1007}});
  ASSERT_TRUE(world->Heartbeat(a, {}, report, world.now()).ok());
  world.Write();
  std::vector<std::string> sources;
  const std::vector<JobView> jobs = world->Jobs();
  for (const v1::BadSample& each : jobs.at(0).bad_samples)
    sources.push_back(each.source());
  EXPECT_THAT(sources, ::testing::ElementsAre("web", "books", ""));
  EXPECT_THAT(
      world.SummaryOf("JOB_GIVEN_UP"),
      HasSubstr("2 of 2000 samples are bad, but max_bad 0 allows 0; the "
                "first: source \"web\": /web/3.jpg: no JPEG; source "
                "\"books\": /books/7.jpg: no JPEG"));
}

}  // namespace
}  // namespace leat::server
