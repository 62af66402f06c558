// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator.h"

#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

// Makes job "j", whose dataset is looked at for each further job.
void MakeJobWithALook(World& world, SessionId worker) {
  world.Create(SpecOf("j", "/d"));
  IndexHeader header = HeaderFor(*world.Asked(worker), "x");
  header.look = BlockOf("look");
  ASSERT_TRUE(world->PutBlock(*header.look, "look", world.now()).ok());
  ASSERT_TRUE(world.Upload(header, "x").ok());
}

TEST(Coordinator, JobsAndDrainsSurviveARestart) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  ASSERT_TRUE(world.Drain("a").ok());
  world.Restart();
  EXPECT_EQ((*world->GetJob("j"))->plan_hash, job->plan_hash);
  EXPECT_EQ((*world->GetJob(job->plan_hash))->schema, job->schema);
  world.Join("a");
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kDraining);
  ASSERT_TRUE(world.Drain("a", false).ok());
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kReady);
}

TEST(Coordinator, AConsumerGetsItsAssignmentAndThenOnlyChanges) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const SessionId consumer = world.Open(*job, "c");
  const auto first = *world->NextForConsumer(consumer);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->workers.size(), 1u);
  EXPECT_EQ(first->owners.size(), 200u);
  EXPECT_EQ(*world->NextForConsumer(consumer), nullptr);
  ASSERT_TRUE(world.Beat(a).ok());
  world.Advance(seconds(1));
  EXPECT_EQ(*world->NextForConsumer(consumer), nullptr) << "nothing changed";
  const SessionId b = world.Join("b");
  world.Advance(milliseconds(60));
  const auto second = *world->NextForConsumer(consumer);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->instance, first->instance);
  EXPECT_GT(second->version, first->version);
  EXPECT_EQ(second->workers.size(), 2u);
  bool told = false;
  for (const WorkerMessage& message : world.Take(b))
    told |= std::holds_alternative<OwnedShards>(message);
  EXPECT_TRUE(told) << "workers are told, too";
}

TEST(Coordinator, ManyJoiningWorkersMakeOneAssignment) {
  World world;
  const SessionId first = world.Join("first");
  const auto job = world.MakeJob(SpecOf("j", "/d"), first);
  const SessionId consumer = world.Open(*job, "c");
  const auto before = *world->NextForConsumer(consumer);
  for (int i = 0; i < 20; ++i) world.Join(fmt::format("w{}", i));
  world.Advance(milliseconds(60));
  const auto after = *world->NextForConsumer(consumer);
  EXPECT_EQ(after->version, before->version + 1);
  EXPECT_EQ(after->workers.size(), 21u);
}

TEST(Coordinator, ANewInstanceIsTakenAfterARestart) {
  World world;
  const auto job = world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  const auto before = *world->NextForConsumer(world.Open(*job, "c"));
  world.Restart();
  const SessionId a = world.Join("a");
  const SessionId consumer = world.Open(*job, "c");
  for (int i = 0; i < 4; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a).ok());
  }
  const auto after = *world->NextForConsumer(consumer);
  ASSERT_NE(after, nullptr);
  EXPECT_NE(before->instance, after->instance);
  EXPECT_EQ(before->owners, after->owners);
}

TEST(Coordinator, ASilentWorkerIsLostAndComesBackWithAHeartbeat) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  for (int i = 0; i < 4; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a).ok());
  }
  world.Advance(milliseconds(60));
  EXPECT_EQ(world->Workers()[1].state, WorkerState::kLost);
  EXPECT_TRUE(world.Found("WORKER_LOST"));
  EXPECT_EQ(world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact)
                ->workers.size(),
            1u);
  ASSERT_TRUE(world.Beat(b).ok());
  world.Advance(milliseconds(60));
  EXPECT_EQ(world->Workers()[1].state, WorkerState::kReady);
  EXPECT_FALSE(world.Found("WORKER_LOST"));
  EXPECT_EQ(world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact)
                ->workers.size(),
            2u);
}

TEST(Coordinator, ABrokenStreamIsForgivenForAMomentOnly) {
  World world;
  const SessionId a = world.Join("a");
  world->CloseWorker(a, /*left=*/false, world.now());
  world.Advance(milliseconds(300));
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kReady);
  world.Advance(milliseconds(300));
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kLost);
  world.Join("a");
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kReady);
}

TEST(Coordinator, AWorkerThatLeavesIsForgotten) {
  World world;
  const SessionId a = world.Join("a");
  world->CloseWorker(a, /*left=*/true, world.now());
  EXPECT_TRUE(world->Workers().empty());
  EXPECT_TRUE(world.Found("NO_WORKERS"));
}

TEST(Coordinator, ALostWorkerIsForgottenAfterAWhile) {
  World world;
  world->CloseWorker(world.Join("a"), false, world.now());
  world.Advance(seconds(5));
  EXPECT_EQ(world->Workers().size(), 1u);
  world.Advance(std::chrono::minutes(11));
  EXPECT_TRUE(world->Workers().empty());
}

TEST(Coordinator, RegisteringAgainEndsTheOlderSession) {
  World world;
  const SessionId old = world.Join("a");
  world.Take(old);
  const SessionId young = world.Join("a");
  EXPECT_EQ(world->NextForWorker(old).status().code(), StatusCode::kAborted);
  EXPECT_EQ(world.Beat(old).code(), StatusCode::kAborted);
  world->CloseWorker(old, false, world.now());
  world.Advance(seconds(1));
  EXPECT_TRUE(world.Beat(young).ok());
  EXPECT_EQ(world->Workers()[0].state, WorkerState::kReady);
}

TEST(Coordinator, AWorkerWithoutAJobsClassOwnsNoneOfItsShards) {
  World world;
  world.Join(WorkerOf("cpu"));
  const SessionId gpu = world.Join(
      WorkerOf("gpu", 2, {DecoderClass::kExact, DecoderClass::kNvjpeg}));
  JobSpec spec = SpecOf("j", "/d");
  const auto exact = world.MakeJob(spec, 1);
  spec.name = "k";
  spec.decoder_class = DecoderClass::kNvjpeg;
  const auto nvjpeg = world.MakeJob(spec, gpu);
  const auto both =
      world->AssignmentOf(exact->datasets[0].id, DecoderClass::kExact);
  const auto one =
      world->AssignmentOf(nvjpeg->datasets[0].id, DecoderClass::kNvjpeg);
  EXPECT_EQ(both->workers.size(), 2u);
  ASSERT_EQ(one->workers.size(), 1u);
  EXPECT_EQ(one->workers[0].name, "gpu");
  world->CloseWorker(gpu, true, world.now());
  EXPECT_TRUE(world.Found("NO_DECODER"));
}

TEST(Coordinator, DrainedWorkersOwnNothingAndStayMembers) {
  World world;
  const SessionId a = world.Join("a");
  world.Join("b");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  ASSERT_TRUE(world.Drain("a").ok());
  ASSERT_TRUE(world.Drain("a").ok()) << "idempotent";
  world.Advance(milliseconds(60));
  const auto now =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact);
  ASSERT_EQ(now->workers.size(), 1u);
  EXPECT_EQ(now->workers[0].name, "b");
  EXPECT_EQ(world.Drain("nobody").code(), StatusCode::kNotFound);
  EXPECT_EQ(world.Drain("nobody", false).code(), StatusCode::kNotFound);
}

TEST(Coordinator, NoiseInCapacityMovesNothingAndATrueChangeDoes) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b"), c = world.Join("c");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const SessionId consumer = world.Open(*job, "c");
  world->NextForConsumer(consumer).IgnoreError();
  world.Advance(milliseconds(60));
  world->NextForConsumer(consumer).IgnoreError();
  const auto beat = [&](double of_c) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a, 800).ok());
    ASSERT_TRUE(world.Beat(b, 900).ok());
    ASSERT_TRUE(world.Beat(c, of_c).ok());
  };
  for (int i = 0; i < 20; ++i) beat(800 + 120 * (i % 2));
  beat(3000);  // one report only
  for (int i = 0; i < 5; ++i) beat(850);
  // Only a large and lasting difference moves shards away from their caches.
  for (int i = 0; i < 100; ++i) beat(1200);
  for (int i = 0; i < 59; ++i) beat(3400);
  EXPECT_EQ(*world->NextForConsumer(consumer), nullptr);
  beat(3400);
  world.Advance(milliseconds(60));
  EXPECT_NE(*world->NextForConsumer(consumer), nullptr);
  EXPECT_GT(world->Workers()[2].weight, 3 * world->Workers()[0].weight);
  EXPECT_GT(world->Workers()[2].shards_owned, 50u);
}

TEST(Coordinator, ANewWorkersFirstCapacitiesCountSoon) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b"), c = world.Join("c");
  for (int i = 0; i < 4; ++i) {
    world.Advance(seconds(1));
    ASSERT_TRUE(world.Beat(a, 800).ok());
    ASSERT_TRUE(world.Beat(b, 800).ok());
    ASSERT_TRUE(world.Beat(c, 1200).ok());
  }
  EXPECT_GT(world->Workers()[2].weight, 1.3 * world->Workers()[0].weight);
}

TEST(Coordinator, DatasetsOfJobsCannotBeDeleted) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const absl::Status used = world.DeleteDataset("photos");
  EXPECT_EQ(used.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(used)), testing::HasSubstr("j"));
  EXPECT_EQ(world.DeleteJob("k").code(), StatusCode::kNotFound);
  EXPECT_TRUE(world.DeleteJob("j").ok());
  EXPECT_TRUE(world.DeleteDataset(job->datasets[0].id.substr(0, 8)).ok());
  EXPECT_EQ(world->BlocksOf(job->datasets[0].id).status().code(),
            StatusCode::kNotFound);
  world.MakeJob(SpecOf("j", "/d"), a);  // listed again
}

TEST(Coordinator, AJobThatExistsIsAttachedAlsoIfNothingMoreMayBeListed) {
  CoordinatorConfig config;
  config.indexing.max_requests = 1;
  World world(config);
  MakeJobWithALook(world, world.Join("a"));
  const World::Box other = world.Create(SpecOf("other", "/other"));
  const World::Box again = world.Create(SpecOf("j", "/d"));
  EXPECT_EQ(Text(other), "no answer");
  ASSERT_EQ(Code(again), StatusCode::kOk) << Text(again);
  EXPECT_TRUE((**again)->attached);
}

TEST(Coordinator, ADatasetThatIsLookedAtIsCountedOnce) {
  World world;
  const SessionId a = world.Join("a");
  MakeJobWithALook(world, a);
  world.Create(SpecOf("k", "/d"));
  EXPECT_TRUE(world.Asked(a)->look.has_value());
  EXPECT_EQ(world->num_datasets(), 1u);
  world.Create(SpecOf("other", "/other"));
  EXPECT_EQ(world->num_datasets(), 2u);
  EXPECT_EQ(world->Datasets().size(), 2u);
}

TEST(Coordinator, ARunningConsumerKeepsItsViewWhenItsJobIsDeleted) {
  World world;
  const auto job = world.MakeJob(SpecOf("j", "/d"), world.Join("a"));
  const SessionId consumer = world.Open(*job, "c");
  world->NextForConsumer(consumer).IgnoreError();
  ASSERT_TRUE(world.DeleteJob("j").ok());
  world.Join("b");
  world.Advance(milliseconds(60));
  ASSERT_NE(*world->NextForConsumer(consumer), nullptr);
  EXPECT_EQ(
      world->OpenConsumer({job->plan_hash, "h", 1, "d", ""}, world.now(), [] {})
          .status()
          .code(),
      StatusCode::kNotFound);
  world->CloseConsumer(consumer, world.now());
  EXPECT_EQ(world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact),
            nullptr);
}

}  // namespace
}  // namespace leat::server
