// SPDX-License-Identifier: Apache-2.0
//
// The decoders that a plan begins with, and the workers that may serve it.
#include "server/state/decoders.h"

#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "server/state/records.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr DecoderClass kExact = DecoderClass::kExact;

// A worker that decodes as `library` does.
WorkerRegistration Decoding(const std::string& name, const std::string& library,
                            uint32_t threads = 2) {
  WorkerRegistration worker = WorkerOf(name, threads);
  worker.decoders = {{kExact, HashOf(library), library}};
  return worker;
}

std::vector<std::string> Owners(World& world, const std::string& dataset,
                                const Digest& decoders) {
  const auto table = world->AssignmentOf(dataset, kExact, decoders);
  std::vector<std::string> names;
  if (table != nullptr)
    for (const WorkerRef& worker : table->workers) names.push_back(worker.name);
  return names;
}

std::string DifferOf(World& world, const std::string& name) {
  for (const WorkerView& view : world->Workers())
    if (view.registration->name == name) return view.decoders_differ;
  return "no worker";
}

TEST(Decoders, AWorkerThatDecodesUnlikeAJobOwnsNoneOfItsShards) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2", 4));
  world.Join(Decoding("b", "jpeg 3", 3));
  world.Join(Decoding("c", "jpeg 2", 1));
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(seconds(1));
  const std::string& dataset = job->datasets[0].id;
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), ElementsAre("a", "c"));
  EXPECT_THAT(Owners(world, dataset, {}), IsEmpty())
      << "before it began nobody was to serve it";
  EXPECT_EQ(world->DecodersOf(job->plan_hash)->libraries, "jpeg 2");
  // The text about the worker has both digests and both libraries.
  const auto both =
      AllOf(HasSubstr(ShortHex(HashOf("jpeg 2"))), HasSubstr("(jpeg 2)"),
            HasSubstr(ShortHex(HashOf("jpeg 3"))), HasSubstr("(jpeg 3)"));
  EXPECT_THAT(DifferOf(world, "b"), both);
  EXPECT_EQ(DifferOf(world, "a"), "");
  EXPECT_THAT(world.SummaryOf("WORKER_DECODERS"),
              AllOf(both, HasSubstr("worker b")));
  EXPECT_FALSE(world.Found("NO_DECODER"));
  EXPECT_EQ(world->Jobs()[0].decoders->digest, HashOf("jpeg 2"));
}

TEST(Decoders, AJobKeepsWhatItBeganWithOverARestartWithOtherWorkers) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const std::string& dataset = job->datasets[0].id;
  world.Restart();
  const SessionId b = world.Join(Decoding("b", "jpeg 3", 64));
  for (int i = 0; i < 4; ++i) {  // until tables are no longer held
    ASSERT_TRUE(world.Beat(b).ok());
    world.Advance(seconds(1));
  }
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), IsEmpty());
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 3")), IsEmpty());
  EXPECT_THAT(world.SummaryOf("NO_DECODER"),
              AllOf(HasSubstr("job j"), HasSubstr("jpeg 2")));
  world.Join(Decoding("a", "jpeg 2"));
  world.Advance(seconds(1));
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), ElementsAre("a"));
  EXPECT_FALSE(world.Found("NO_DECODER"));
}

TEST(Decoders, WorkersAreUpgradedOneAfterTheOtherWhileAJobRuns) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  world.Join(Decoding("b", "jpeg 2"));
  const auto old_job = world.MakeJob(SpecOf("old", "/d"), a);
  const std::string& dataset = old_job->datasets[0].id;
  world.Join(Decoding("b", "jpeg 3", 4));  // the same name and address
  world.Advance(seconds(1));
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), ElementsAre("a"));
  // A new job begins with the decoders of most threads.
  const auto new_job = world.MakeJob(SpecOf("new", "/d", 32), a);
  world.Advance(seconds(1));
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 3")), ElementsAre("b"));
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), ElementsAre("a"));
  // Another job of the old plan makes the old plan's bytes.
  world.MakeJob(SpecOf("again", "/d"), a);
  EXPECT_EQ(world->DecodersOf(old_job->plan_hash)->libraries, "jpeg 2");
  // The plan is forgotten with its last job.
  EXPECT_TRUE(world.DeleteJob("old").ok());
  EXPECT_TRUE(world->DecodersOf(old_job->plan_hash).has_value());
  EXPECT_TRUE(world.DeleteJob("again").ok());
  EXPECT_FALSE(world->DecodersOf(old_job->plan_hash).has_value());
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), IsEmpty());
  EXPECT_EQ(DifferOf(world, "b"), "");
}

TEST(Decoders, WorkersThatDoNotTellThemServeEveryJob) {
  World world;
  const SessionId quiet = world.Join("quiet");
  const auto job = world.MakeJob(SpecOf("j", "/d"), quiet);
  const std::string& dataset = job->datasets[0].id;
  const SessionId consumer = world.Open(*job, "c");
  EXPECT_THAT(Owners(world, dataset, {}), ElementsAre("quiet"));
  ASSERT_NE(*world->NextForConsumer(consumer), nullptr);
  // The first worker that reports its digest pins the job, and its consumers
  // follow.
  world.Join(Decoding("a", "jpeg 2"));
  world.Advance(seconds(1));
  EXPECT_THAT(Owners(world, dataset, {}), IsEmpty());
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")),
              ElementsAre("a", "quiet"));
  const auto next = world->NextForConsumer(consumer);
  ASSERT_TRUE(next.ok() && *next != nullptr);
  EXPECT_EQ((*next)->workers.size(), 2u);
  // Neither table remains when all its users are gone.
  world->CloseConsumer(consumer, world.now());
  EXPECT_TRUE(world.DeleteJob("j").ok());
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), IsEmpty());
}

TEST(Decoders, AConsumerThatOutlivesItsJobLeavesNoTableBehind) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  const std::string& dataset = job->datasets[0].id;
  world.Advance(seconds(1));
  const SessionId consumer = world.Open(*job, "c");
  ASSERT_TRUE(world.DeleteJob("j").ok());
  // The same plan begins anew.
  world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(seconds(1));
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), ElementsAre("a"));
  world->CloseConsumer(consumer, world.now());
  EXPECT_TRUE(world.DeleteJob("j").ok());
  EXPECT_THAT(Owners(world, dataset, HashOf("jpeg 2")), IsEmpty());
}

TEST(Decoders, AConsumerThatComesBeforeItsJobBeginsGetsATableThatIsThere) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(seconds(1));
  SessionId consumer = 0;
  std::shared_ptr<const Assignment> told;
  const auto look = [&] {
    const auto next = world->NextForConsumer(consumer);
    if (next.ok() && *next != nullptr) told = *next;
  };
  const Now now = world.now();
  world->CreateJob(SpecOf("k", "/d", 32), now.mono + seconds(60), now,
                   [&](absl::StatusOr<CreatedJob> created) {
                     ASSERT_TRUE(created.ok()) << created.status();
                     const Digest& plan = created->info->plan_hash;
                     ASSERT_FALSE(world->DecodersOf(plan).has_value());
                     const auto opened = world->OpenConsumer(
                         {plan, "host", 1, "c", ""}, now, look);
                     ASSERT_TRUE(opened.ok()) << opened.status();
                     consumer = *opened;
                   });
  world.Write();
  ASSERT_NE(told, nullptr) << "nobody has woken it";
  EXPECT_EQ(told->workers.size(), 1u);
}

TEST(Decoders, AJobThatWasMadeWithoutWorkersBeginsWithTheFirst) {
  World world;
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  world.MakeJob(SpecOf("j", "/d"), a);
  world->CloseWorker(a, /*left=*/true, world.now());
  world.Advance(seconds(1));
  const World::Box box = world.Create(SpecOf("k", "/d", 32));
  ASSERT_TRUE(box->has_value() && (*box)->ok());
  const Digest plan = (**box)->info->plan_hash;
  EXPECT_FALSE(world->DecodersOf(plan).has_value());
  world.Join(Decoding("b", "jpeg 3"));
  world.Advance(seconds(1));
  EXPECT_EQ(world->DecodersOf(plan)->libraries, "jpeg 3");
}

// A store that has no room for a while.
class FullStore final : public MemoryStore {
 public:
  absl::Status Append(const Event& event) override {
    if (full && std::holds_alternative<DecodersPinned>(event.kind))
      return absl::ResourceExhaustedError("no space left");
    return MemoryStore::Append(event);
  }
  bool full = true;
};

TEST(Decoders, WhatCouldNotBeWrittenIsWrittenLaterAndServedByNobodyBefore) {
  const auto store = std::make_shared<FullStore>();
  World world({}, store);
  const SessionId a = world.Join(Decoding("a", "jpeg 2"));
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(seconds(2));
  EXPECT_THAT(Owners(world, job->datasets[0].id, {}), IsEmpty());
  EXPECT_THAT(Owners(world, job->datasets[0].id, HashOf("jpeg 2")), IsEmpty());
  store->full = false;
  ASSERT_TRUE(world.Beat(a).ok());
  world.Advance(seconds(2));
  ASSERT_TRUE(world.Beat(a).ok());
  world.Advance(seconds(2));
  EXPECT_THAT(Owners(world, job->datasets[0].id, HashOf("jpeg 2")),
              ElementsAre("a"));
}

// --- What is kept -----------------------------------------------------------

// The event as seen by a release that does not know its kind, and back.
std::string Renumbered(const std::string& record, bool known) {
  stored::v1::Event from, to;
  from.ParseFromString(record);
  to.set_at_unix_ns(from.at_unix_ns());
  constexpr int kUnknownKind = 100;
  if (known)
    to.GetReflection()->MutableUnknownFields(&to)->AddLengthDelimited(
        kUnknownKind, from.decoders_pinned().SerializeAsString());
  else
    to.mutable_decoders_pinned()->ParseFromString(from.GetReflection()
                                                      ->GetUnknownFields(from)
                                                      .field(0)
                                                      .length_delimited());
  return to.SerializeAsString();
}

std::vector<std::string> RecordsOf(const State& state) {
  std::vector<std::string> records;
  for (const Event& event : state.Events())
    records.push_back(EncodeEvent(event));
  return records;
}

// Makes a state with a job whose decoders are pinned.
State PinnedState(Digest* plan) {
  State state;
  DatasetIndexed dataset;
  dataset.dataset.id = "d1";
  dataset.dataset.shards = *ShardTable::Uniform(1000, 10);
  const JobSpec spec = SpecOf("j", "/d");
  *plan = PlanHash(spec, {&dataset.dataset, 1});
  EXPECT_TRUE(state.Apply({{}, dataset, {}}).ok());
  EXPECT_TRUE(
      state.Apply({{}, JobCreated{spec, {"d1"}, {}, *plan, ""}, {}}).ok());
  EXPECT_THAT(state.Unpinned(kExact), ElementsAre(*plan));
  EXPECT_TRUE(state
                  .Apply({WallTime(seconds(5)),
                          DecodersPinned{{*plan}, HashOf("jpeg 2"), "jpeg 2"},
                          {}})
                  .ok());
  EXPECT_THAT(state.Unpinned(kExact), IsEmpty());
  return state;
}

TEST(Decoders, ItsEventsMakeTheSameStateAgain) {
  Digest plan;
  const State state = PinnedState(&plan);
  State again;
  for (const std::string& record : RecordsOf(state))
    again.Replay(*DecodeEvent(record));
  EXPECT_THAT(again.set_aside(), IsEmpty());
  EXPECT_EQ(again.DecodersOf(plan)->digest, HashOf("jpeg 2"));
  EXPECT_EQ(again.DecodersOf(plan)->libraries, "jpeg 2");
  EXPECT_EQ(RecordsOf(again), RecordsOf(state));
  // The first pin stays, and a plan without jobs has none.
  ASSERT_TRUE(
      again
          .Apply({{},
                  DecodersPinned{
                      {plan, HashOf("other")}, HashOf("jpeg 3"), "jpeg 3"},
                  {}})
          .ok());
  EXPECT_EQ(RecordsOf(again), RecordsOf(state));
  ASSERT_EQ(again.DecoderGroups().size(), 1u);
  EXPECT_EQ(again.DecoderGroups()[0].plans, 1u);
}

TEST(Decoders, AReleaseThatDoesNotKnowTheEventKeepsIt) {
  Digest plan;
  const State state = PinnedState(&plan);
  // The older release reads the state, uses the job, and writes it all again.
  State older;
  for (const std::string& record : RecordsOf(state)) {
    const bool pins =
        std::holds_alternative<DecodersPinned>(DecodeEvent(record)->kind);
    older.Replay(*DecodeEvent(pins ? Renumbered(record, true) : record));
  }
  EXPECT_EQ(older.set_aside().size(), 1u);
  ASSERT_NE(older.FindJob(plan), nullptr);
  State newer;
  for (const std::string& record : RecordsOf(older)) {
    const bool unknown =
        std::holds_alternative<SetAside>(DecodeEvent(record)->kind);
    newer.Replay(*DecodeEvent(unknown ? Renumbered(record, false) : record));
  }
  EXPECT_THAT(newer.set_aside(), IsEmpty());
  EXPECT_EQ(newer.DecodersOf(plan)->digest, HashOf("jpeg 2"));
  EXPECT_EQ(RecordsOf(newer), RecordsOf(state));
}

TEST(Decoders, ThoseOfAJobThatWasSetAsideAreKept) {
  Digest plan;
  const std::vector<std::string> records = RecordsOf(PinnedState(&plan));
  // This version refuses the job's record: its hash differs.
  State state;
  for (const std::string& record : records) {
    Event event = *DecodeEvent(record);
    if (auto* created = std::get_if<JobCreated>(&event.kind))
      created->plan_hash[0] ^= 1;
    state.Replay(event);
  }
  ASSERT_EQ(state.set_aside().size(), 1u);
  EXPECT_FALSE(state.DecodersOf(plan).has_value());
  std::vector<std::string> again = RecordsOf(state), want = records;
  std::ranges::sort(again);
  std::ranges::sort(want);
  EXPECT_EQ(again, want);
  State newer;
  for (const std::string& record : RecordsOf(state))
    newer.Replay(*DecodeEvent(record));
  EXPECT_EQ(newer.DecodersOf(plan)->libraries, "jpeg 2");
}

TEST(Decoders, ARecordThatIsNoDigestIsRefused) {
  stored::v1::Event proto;
  proto.mutable_decoders_pinned()->set_digest("short");
  EXPECT_EQ(DecodeEvent(proto.SerializeAsString()).status().code(),
            absl::StatusCode::kDataLoss);
  proto.mutable_decoders_pinned()->set_digest(std::string(32, 'd'));
  EXPECT_TRUE(DecodeEvent(proto.SerializeAsString()).ok());
  proto.mutable_decoders_pinned()->add_plan_hashes("short");
  EXPECT_EQ(DecodeEvent(proto.SerializeAsString()).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace leat::server
