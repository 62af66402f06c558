// SPDX-License-Identifier: Apache-2.0
//
// Jobs that not every worker is able to compute.
#include "server/membership/ability_gap.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Texts = std::vector<std::string>;

Graph ReadsParquet(const std::string& path) {
  Graph graph;
  graph.nodes = {{"readers.parquet",
                  {},
                  {{"paths", Texts{path}},
                   {"columns", Texts{"image", "label"}},
                   {"types", Texts{"encoded", "int32"}}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", std::vector<int64_t>{8, 8}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

JobSpec ParquetSpec(const std::string& name, const std::string& path = "/p") {
  JobSpec spec = SpecOf(name, path);
  spec.pipeline = ReadsParquet(path);
  return spec;
}

WorkerRegistration Able(const std::string& name) {
  WorkerRegistration worker = WorkerOf(name);
  worker.abilities = {"parquet"};
  return worker;
}

WorkerRegistration Unable(const std::string& name) {
  WorkerRegistration worker = WorkerOf(name);
  worker.lacked["parquet"] = "there is no libarrow.so.2600";
  return worker;
}

uint64_t OwnedBy(World& world, const std::string& name) {
  for (const WorkerView& view : world->Workers())
    if (view.registration->name == name) return view.shards_owned;
  return 0;
}

TEST(Abilities, AWorkerWithoutOneNeitherListsNorOwnsShards) {
  World world;
  const SessionId a = world.Join(Unable("a")), b = world.Join(Able("b"));
  const World::Box box = world.Create(ParquetSpec("tables"));
  EXPECT_FALSE(world.Asked(a).has_value());
  const std::optional<IndexDirective> asked = world.Asked(b);
  ASSERT_TRUE(asked.has_value());
  ASSERT_TRUE(world.Upload(HeaderFor(*asked, "index"), "index").ok());
  ASSERT_EQ(Text(box), "OK");
  world.Advance(milliseconds(60));
  EXPECT_EQ(OwnedBy(world, "a"), 0u);
  EXPECT_EQ(OwnedBy(world, "b"), 100u);
  world.Join(Able("c"));
  world.Advance(milliseconds(60));
  EXPECT_EQ(OwnedBy(world, "a"), 0u);
  EXPECT_GT(OwnedBy(world, "c"), 20u);
  EXPECT_EQ(OwnedBy(world, "b") + OwnedBy(world, "c"), 100u);
  EXPECT_FALSE(world.Found("NO_ABILITY"));
  // It serves jobs that need nothing.
  ASSERT_NE(world.MakeJob(SpecOf("photos", "/d"), a), nullptr);
  world.Advance(milliseconds(60));
  EXPECT_GT(OwnedBy(world, "a"), 20u);
}

TEST(Abilities, AWorkerWithoutThoseOfOneSourceOwnsNothingOfAMixture) {
  World world;
  const SessionId a = world.Join(WorkerOf("a")), b = world.Join(Able("b"));
  JobSpec spec = ParquetSpec("mix");
  spec.last_batch = LastBatch::kStream;
  spec.sources = {{"photos", SpecOf("j", "/d").pipeline},
                  {"tables", std::exchange(spec.pipeline, {})}};
  spec.shares = {{0, {1, 1}}};
  const World::Box box = world.Create(spec);
  for (const SessionId session : {a, b})
    for (const WorkerMessage& message : world.Take(session))
      if (const auto* asked = std::get_if<IndexDirective>(&message)) {
        EXPECT_TRUE(world.Upload(HeaderFor(*asked, "i"), "i").ok());
      }
  ASSERT_EQ(Text(box), "OK");
  world.Advance(milliseconds(60));
  EXPECT_EQ(OwnedBy(world, "a"), 0u);
  EXPECT_EQ(OwnedBy(world, "b"), 200u);
}

TEST(Abilities, AJobThatNoReadyWorkerCanServeIsRefusedWithTheCause) {
  World world;
  // Without workers it waits for one, since those to come are unknown.
  const World::Box waiting = world.Create(ParquetSpec("early"));
  EXPECT_EQ(Text(waiting), "no answer");
  const SessionId a = world.Join(Unable("a"));
  EXPECT_FALSE(world.Asked(a).has_value());
  EXPECT_EQ(Text(waiting), "no answer");
  EXPECT_THAT(ErrorOf(world.Create(ParquetSpec("tables", "/q"))),
              AllOf(HasSubstr("job tables needs \"parquet\", which none of 1 "
                              "ready worker has (worker a: there is no "
                              "libarrow.so.2600)"),
                    HasSubstr("pip install 'leat-data[parquet]'")));
  EXPECT_TRUE(world.Asked(world.Join(Able("b"))).has_value());
}

TEST(Abilities, AFindingNamesJobsThatNoReadyWorkerCanServe) {
  World world;
  world.Join(Unable("a"));
  const SessionId b = world.Join(Able("b"));
  const auto job = world.MakeJob(ParquetSpec("tables"), b);
  ASSERT_NE(job, nullptr);
  EXPECT_FALSE(world.Found("NO_ABILITY"));
  ASSERT_TRUE(world.Drain("b").ok());
  world.Advance(milliseconds(60));
  EXPECT_TRUE(world.Found("NO_ABILITY"));
  EXPECT_EQ(world.SummaryOf("NO_ABILITY"),
            "job tables needs \"parquet\", which none of 1 ready worker has "
            "(worker a: there is no libarrow.so.2600)");
  // The owners stay, as those of any table that would be empty.
  EXPECT_EQ(OwnedBy(world, "a"), 0u);
  // Attaching waits for no look, since no worker could take it.
  const World::Box attached = world.Create(ParquetSpec("tables"));
  EXPECT_EQ(Text(attached), "OK");
  // After a restart, as after any, the job is still known to need it.
  world.Restart();
  world.Join(Unable("a"));
  world.Advance(milliseconds(60));
  EXPECT_TRUE(world.Found("NO_ABILITY"));
  // The library was installed, and the worker started again.
  WorkerRegistration again = Able("a");
  again.pid = 2;
  world.Join(again);
  world.Advance(seconds(60));
  EXPECT_FALSE(world.Found("NO_ABILITY"));
}

// Most threads decode otherwise, but they lack what the job needs.
TEST(Abilities, APlanBeginsWithDecodersOfWorkersThatHaveThem) {
  const auto decoding = [](WorkerRegistration worker, const char* library) {
    worker.decoders = {{DecoderClass::kExact, HashOf(library), library}};
    return worker;
  };
  World world;
  const SessionId a = world.Join(decoding(WorkerOf("a", 16), "jpeg 3"));
  const SessionId b = world.Join(decoding(Able("b"), "jpeg 2"));
  const auto tables = world.MakeJob(ParquetSpec("tables"), b);
  const auto photos = world.MakeJob(SpecOf("photos", "/d"), a);
  ASSERT_NE(tables, nullptr);
  ASSERT_NE(photos, nullptr);
  world.Advance(seconds(1));
  EXPECT_EQ(world->DecodersOf(tables->plan_hash)->libraries, "jpeg 2");
  EXPECT_EQ(world->DecodersOf(photos->plan_hash)->libraries, "jpeg 3");
  EXPECT_EQ(OwnedBy(world, "b"), 100u);
  EXPECT_EQ(OwnedBy(world, "a"), 100u);
  // A worker that decodes like that and lacks it does not hide the finding.
  world.Join(decoding(Unable("c"), "jpeg 2"));
  ASSERT_TRUE(world.Drain("b").ok());
  world.Join(decoding(Able("d"), "jpeg 3"));
  world.Advance(seconds(1));
  EXPECT_FALSE(world.Found("NO_DECODER"));
  EXPECT_EQ(world.SummaryOf("NO_ABILITY"),
            "job tables needs \"parquet\", which no ready worker has that "
            "decodes as they began (worker c: there is no libarrow.so.2600)");
}

TEST(Abilities, WhatSeveralWorkersHaveOneByOneNoneHasTogether) {
  Membership membership({});
  WorkerRegistration one = WorkerOf("one"), two = WorkerOf("two");
  one.abilities = {"a", "b"};
  two.abilities = {"b", "c"};
  const Now now{};
  membership.Register(one, 1, false, now);
  membership.Register(two, 2, false, now);
  const auto gap = [&](const Abilities& needed) {
    const std::optional<AbilityGap> found =
        GapOf(membership, DecoderClass::kExact, needed);
    return found ? found->Names() : "";
  };
  EXPECT_EQ(gap({"a", "b"}), "");
  EXPECT_EQ(gap({"a", "c"}), "\"a\" and \"c\" together");
  EXPECT_EQ(gap({"a", "d"}), "\"d\"");
  EXPECT_EQ(gap({"d", "e"}), "\"d\" and \"e\"");
}

}  // namespace
}  // namespace leat::server
