// SPDX-License-Identifier: Apache-2.0
//
// Jobs of several datasets have a table for each.
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator/parts/tables.h"
#include "tests/server/coordinator/parts/mixture.h"

namespace leat::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class MixtureTables : public testing::Test {
 protected:
  std::shared_ptr<const Assignment> Next(SessionId consumer) {
    const auto table = world_->NextForConsumer(consumer);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : nullptr;
  }
  // Takes all tables that wait for the consumer. No dataset has two.
  std::map<std::string, std::shared_ptr<const Assignment>> TakeTables(
      SessionId consumer) {
    std::map<std::string, std::shared_ptr<const Assignment>> tables;
    while (const auto table = Next(consumer)) {
      EXPECT_TRUE(tables.emplace(NameOf(table->dataset_id), table).second);
      if (tables.size() > 10) break;
    }
    return tables;
  }
  std::string NameOf(const std::string& id) {
    for (const DatasetView& view : world_->Datasets())
      if (view.info->id == id) return view.info->name;
    return "unknown";
  }
  std::vector<std::string> NamesOf(SessionId consumer) {
    std::vector<std::string> names;
    for (const auto& [name, table] : TakeTables(consumer))
      names.push_back(name);
    return names;
  }
  std::vector<std::string> Owners(const JobInfo& job, size_t source,
                                  const Digest& decoders = {}) {
    const auto table = world_->AssignmentOf(job.datasets[source].id,
                                            DecoderClass::kExact, decoders);
    std::vector<std::string> names;
    if (table != nullptr)
      for (const WorkerRef& worker : table->workers)
        names.push_back(worker.name);
    return names;
  }
  static WorkerRegistration Decoding(const std::string& name,
                                     const std::string& library) {
    WorkerRegistration worker = WorkerOf(name);
    worker.decoders = {{DecoderClass::kExact, HashOf(library), library}};
    return worker;
  }

  World world_;
};

TEST_F(MixtureTables, AConsumerGetsEachOnce) {
  const SessionId a = world_.Join("a");
  const auto job =
      MakeMixture(world_, MixtureOf("m", {"web", "books", "code"}), a);
  const SessionId consumer = world_.Open(*job, "c");
  const auto tables = TakeTables(consumer);
  ASSERT_THAT(tables, SizeIs(3));
  for (const DatasetInfo& dataset : job->datasets) {
    ASSERT_TRUE(tables.contains(dataset.name)) << dataset.name;
    EXPECT_EQ(tables.at(dataset.name)->dataset_id, dataset.id);
  }
  EXPECT_EQ(Next(consumer), nullptr);
}

TEST_F(MixtureTables, TwoSourcesOfOneDatasetHaveOne) {
  JobSpec spec = MixtureOf("m", {"web", "books"});
  spec.sources[1].pipeline = spec.sources[0].pipeline;
  const auto job = MakeMixture(world_, spec, world_.Join("a"));
  EXPECT_THAT(NamesOf(world_.Open(*job, "c")), ElementsAre("web"));
}

TEST_F(MixtureTables, AConsumerGetsThoseThatChange) {
  const SessionId a = world_.Join("a");
  const auto job =
      MakeMixture(world_, MixtureOf("m", {"web", "books", "code"}), a);
  const SessionId b = world_.Join("b");
  const SessionId consumer = world_.Open(*job, "c");
  world_.Advance(seconds(1));
  TakeTables(consumer);
  // A worker that cannot read one dataset loses the shards of that one.
  v1::StorageFailure failure = FailureWith("/books", "Input/output error");
  failure.add_fingerprints(job->datasets[1].fingerprint.data(),
                           job->datasets[1].fingerprint.size());
  ASSERT_TRUE(world_.Beat(b, 0, {failure}).ok());
  world_.Advance(milliseconds(60));
  const auto without = TakeTables(consumer);
  ASSERT_THAT(without, SizeIs(1));
  EXPECT_EQ(without.begin()->first, "books");
  EXPECT_THAT(without.begin()->second->workers, SizeIs(1));
  // A worker that joins gets shards of all datasets.
  ASSERT_TRUE(world_.Beat(a).ok());
  world_.Join("c");
  world_.Advance(seconds(1));
  EXPECT_THAT(NamesOf(consumer), ElementsAre("books", "code", "web"));
}

TEST_F(MixtureTables, TheyGoWithTheirLastUser) {
  const SessionId a = world_.Join("a");
  const auto job = MakeMixture(world_, MixtureOf("m", {"web", "books"}), a);
  const auto plain = MakeMixture(world_, SpecOf("plain", "/books"), a);
  const SessionId consumer = world_.Open(*job, "c");
  ASSERT_TRUE(world_.DeleteJob("m").ok());
  for (size_t i = 0; i < 2; ++i)
    EXPECT_THAT(Owners(*job, i), ElementsAre("a")) << i;
  world_->CloseConsumer(consumer, world_.now());
  EXPECT_THAT(Owners(*job, 0), IsEmpty());
  EXPECT_THAT(Owners(*job, 1), ElementsAre("a")) << "the plain job's";
  ASSERT_TRUE(world_.DeleteJob("plain").ok());
  EXPECT_THAT(Owners(*job, 1), IsEmpty());
}

// The first worker that reports its digest pins the job.
TEST_F(MixtureTables, PinnedDecodersMoveAll) {
  const SessionId quiet = world_.Join("quiet");
  const auto job =
      MakeMixture(world_, MixtureOf("m", {"web", "books", "code"}), quiet);
  const SessionId consumer = world_.Open(*job, "c");
  EXPECT_THAT(TakeTables(consumer), SizeIs(3));
  world_.Join(Decoding("a", "jpeg 2"));
  world_.Advance(seconds(1));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(Owners(*job, i), IsEmpty()) << i;
    EXPECT_THAT(Owners(*job, i, HashOf("jpeg 2")), ElementsAre("a", "quiet"))
        << i;
  }
  const auto moved = TakeTables(consumer);
  ASSERT_THAT(moved, SizeIs(3));
  for (const auto& [name, table] : moved)
    EXPECT_THAT(table->workers, SizeIs(2)) << name;
  world_->CloseConsumer(consumer, world_.now());
  EXPECT_TRUE(world_.DeleteJob("m").ok());
  for (size_t i = 0; i < 3; ++i)
    EXPECT_THAT(Owners(*job, i, HashOf("jpeg 2")), IsEmpty()) << i;
}

// A restarted coordinator has the job from its store.
TEST_F(MixtureTables, ComeBackAfterARestart) {
  const auto job =
      MakeMixture(world_, MixtureOf("m", {"web", "books"}), world_.Join("a"));
  world_.Restart();
  const SessionId consumer = world_.Open(*job, "c");
  EXPECT_EQ(Next(consumer), nullptr) << "no worker is there";
  const SessionId a = world_.Join("a");
  for (int i = 0; i < 4; ++i) {  // until tables are no longer held
    ASSERT_TRUE(world_.Beat(a).ok());
    world_.Advance(seconds(1));
  }
  EXPECT_THAT(NamesOf(consumer), ElementsAre("books", "web"));
}

}  // namespace
}  // namespace leat::server
