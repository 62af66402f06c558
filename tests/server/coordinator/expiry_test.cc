// SPDX-License-Identifier: Apache-2.0
//
// Jobs, datasets and indexes that are no longer used.
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;
using std::chrono::hours;

CoordinatorConfig WithTtl(Duration ttl) {
  CoordinatorConfig config;
  config.job_ttl = ttl;
  // Heartbeats do not matter in these tests.
  config.heartbeat_interval = hours(1);
  config.membership.lost_after = hours(100'000);
  return config;
}

std::vector<std::string> JobNames(World& world) {
  std::vector<std::string> names;
  for (const JobView& view : world->Jobs())
    names.push_back(view.info->spec.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Expiry, AnUnusedJobGoesWithItsDatasetAndIndex) {
  World world(WithTtl(hours(30 * 24)));
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(hours(29 * 24));
  EXPECT_EQ(JobNames(world), Names{"j"});
  EXPECT_TRUE(world->BlocksOf(job->datasets[0].id).ok());
  world.Advance(hours(2 * 24));
  EXPECT_TRUE(JobNames(world).empty());
  EXPECT_TRUE(world->Datasets().empty());
  EXPECT_EQ(world->BlocksOf(job->datasets[0].id).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact),
            nullptr);
  world.MakeJob(SpecOf("j", "/d"), a);  // and can be created again
}

TEST(Expiry, AJobInUseStaysAndItsUseIsCountedFromItsEnd) {
  World world(WithTtl(hours(48)));
  const auto job = world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  const SessionId consumer = world.Open(*job, "c");
  world.Advance(hours(1000));
  EXPECT_EQ(JobNames(world), Names{"j"});
  world->CloseConsumer(consumer, world.now());
  world.Advance(hours(46));
  EXPECT_EQ(JobNames(world), Names{"j"});
  world.Advance(hours(4));
  EXPECT_TRUE(JobNames(world).empty());
}

TEST(Expiry, AttachingIsAUse) {
  World world(WithTtl(hours(48)));
  world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  for (int i = 0; i < 10; ++i) {
    world.Advance(hours(40));
    World::Box box = world.Create(SpecOf("j", "/d"));
    ASSERT_TRUE(box->has_value() && (*box)->ok()) << i;
    EXPECT_TRUE((*box)->value().attached);
  }
}

TEST(Expiry, TheLastUseSurvivesARestart) {
  World world(WithTtl(hours(30 * 24)));
  const SessionId a = world.Join("a");
  const auto old = world.MakeJob(SpecOf("old", "/old"), a);
  const auto young = world.MakeJob(SpecOf("young", "/young"), a);
  const SessionId consumer = world.Open(*young, "c");
  world.Advance(hours(28 * 24));
  world->CloseConsumer(consumer, world.now());
  const uint64_t written = world.store().sequence();
  EXPECT_LE(written, 4u + 29u) << "a use is stored once a day, at most";
  EXPECT_GE(written, 4u + 20u);
  world.Restart();
  world.Advance(hours(5 * 24));
  EXPECT_EQ(JobNames(world), Names{"young"});
  EXPECT_EQ(world->Datasets().size(), 1u);
  world.Restart();
  world.Advance(hours(27 * 24));
  EXPECT_TRUE(JobNames(world).empty());
}

TEST(Expiry, AfterAStartThereIsAnHourToSeeThatTheClockIsWrong) {
  World world(WithTtl(hours(48)));
  world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  world.Stop(hours(24 * 365));
  world.Restart();
  world.Advance(std::chrono::minutes(50));
  EXPECT_EQ(JobNames(world), Names{"j"});
  world.Advance(hours(2));
  EXPECT_TRUE(JobNames(world).empty());
}

TEST(Expiry, ADatasetOfAnotherJobStays) {
  World world(WithTtl(hours(48)));
  const SessionId a = world.Join("a");
  world.MakeJob(SpecOf("one", "/d"), a);
  const auto two = world.MakeJob(SpecOf("two", "/d", 32), a);
  const SessionId consumer = world.Open(*two, "c");
  world.Advance(hours(100));
  EXPECT_EQ(JobNames(world), Names{"two"});
  EXPECT_EQ(world->Datasets().size(), 1u);
  // Neither does a consumer whose job was deleted.
  ASSERT_TRUE(world.DeleteJob("two").ok());
  world.Advance(hours(100));
  EXPECT_EQ(world->Datasets().size(), 1u);
  world->CloseConsumer(consumer, world.now());
  world.Advance(hours(100));
  EXPECT_TRUE(world->Datasets().empty());
}

TEST(Expiry, AConsumerUsesAllJobsOfItsPlan) {
  World world(WithTtl(hours(48)));
  const SessionId a = world.Join("a");
  const auto one = world.MakeJob(SpecOf("one", "/d"), a);
  const auto two = world.MakeJob(SpecOf("two", "/d"), a);
  ASSERT_EQ(one->plan_hash, two->plan_hash);
  const SessionId consumer = world.Open(*two, "c");
  world.Advance(hours(100));
  EXPECT_EQ(JobNames(world), (Names{"one", "two"}));
  world->CloseConsumer(consumer, world.now());
  world.Advance(hours(100));
  EXPECT_TRUE(JobNames(world).empty());
}

TEST(Expiry, NeverMeansNever) {
  World world(WithTtl(Duration(0)));
  world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  const uint64_t written = world.store().sequence();
  world.Advance(hours(24 * 3650));
  EXPECT_EQ(JobNames(world), Names{"j"});
  EXPECT_EQ(world.store().sequence(), written);
}

}  // namespace
}  // namespace leat::server
