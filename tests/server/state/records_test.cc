// SPDX-License-Identifier: Apache-2.0
//
// Records of mixtures, beside those of other jobs, which are as they were
// before there were mixtures.
#include "server/state/records.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "rpc/wire/messages.h"
#include "server/state/job_check.h"
#include "tests/server/coordinator/parts/mixture.h"

namespace leat::server {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

DatasetIndexed DatasetAs(const std::string& id, uint64_t samples = 1000) {
  DatasetIndexed indexed;
  indexed.dataset.id = indexed.dataset.reader = indexed.dataset.name = id;
  indexed.dataset.shards = *ShardTable::Uniform(samples, 10);
  indexed.dataset.fingerprint = HashOf(id);
  return indexed;
}

JobCreated CreatedOf(const JobSpec& spec,
                     const std::vector<DatasetIndexed>& indexed) {
  const PreparedJob job = *Prepare(spec);
  std::vector<std::string> ids;
  std::vector<DatasetInfo> datasets;
  for (const DatasetIndexed& each : indexed) {
    ids.push_back(each.dataset.id);
    datasets.push_back(each.dataset);
  }
  return {job.spec,       ids,        job.schema, PlanHash(job.spec, datasets),
          job.not_on_gpu, "trainer/v"};
}

JobSpec MixedSpec() {
  JobSpec spec = MixtureOf("m", {"web", "books"});
  spec.shares = {{0, {7, 2}}, {100, {0.5, 0}}};
  spec.source_field = "from";
  return spec;
}

// Returns the record without its spec, whose maps have no order.
std::string WithoutSpec(const std::string& record) {
  stored::v1::Event proto;
  EXPECT_TRUE(proto.ParseFromString(record));
  EXPECT_NE(proto.job_created().spec(), "");
  proto.mutable_job_created()->clear_spec();
  return proto.SerializeAsString();
}

// With the fields of JobCreated from before there were mixtures.
TEST(Records, APlainJobIsStoredAsItWasBeforeMixtures) {
  const JobCreated created = CreatedOf(SpecOf("j", "/d"), {DatasetAs("d1")});
  stored::v1::Event proto;
  proto.set_at_unix_ns(5 * kSecond);
  stored::v1::JobCreated* job = proto.mutable_job_created();
  job->set_name("j");
  job->set_dataset_id("d1");
  job->set_spec(rpc::ToProto(created.spec).SerializeAsString());
  job->set_plan_hash(created.plan_hash.data(), created.plan_hash.size());
  job->set_created_by("trainer/v");
  EXPECT_EQ(WithoutSpec(EncodeEvent({WallTime(seconds(5)), created, {}})),
            WithoutSpec(proto.SerializeAsString()));
  // Its spec has none of the mixtures' fields, 14 to 17.
  v1::JobSpec spec;
  ASSERT_TRUE(spec.ParseFromString(job->spec()));
  EXPECT_TRUE(spec.has_pipeline());
  EXPECT_TRUE(spec.sources().empty() && spec.shares().empty());
  EXPECT_EQ(spec.mix_end(), v1::MIX_END_UNSPECIFIED);
  const absl::StatusOr<Event> read = DecodeEvent(proto.SerializeAsString());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(std::get<JobCreated>(read->kind).dataset_ids, ElementsAre("d1"));
}

TEST(Records, AMixtureIsReadAsItWasWritten) {
  const std::vector<DatasetIndexed> indexed = {DatasetAs("d1"),
                                               DatasetAs("d2", 70)};
  const JobCreated created = CreatedOf(MixedSpec(), indexed);
  const std::string stored = EncodeEvent({WallTime(seconds(5)), created, {}});
  stored::v1::Event proto;
  ASSERT_TRUE(proto.ParseFromString(stored));
  EXPECT_EQ(proto.job_created().dataset_id(), "");
  EXPECT_THAT(proto.job_created().dataset_ids(), ElementsAre("d1", "d2"));
  State state;
  for (const DatasetIndexed& each : indexed)
    ASSERT_TRUE(state.Apply({{}, each, {}}).ok());
  const absl::StatusOr<Event> read = DecodeEvent(stored);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(state.Apply(*read).ok()) << state.Apply(*read);
  const JobRecord* job = state.FindJob("m");
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->info->spec, created.spec);
  EXPECT_EQ(job->info->schema, created.schema);
  EXPECT_EQ(job->info->plan_hash, created.plan_hash);
  EXPECT_EQ(job->created_by, "trainer/v");
  EXPECT_EQ(job->not_on_gpu, created.not_on_gpu);
  EXPECT_THAT(job->not_on_gpu, HasSubstr("source_field"));
  // A compacted state gives the same record again.
  EXPECT_EQ(WithoutSpec(EncodeEvent(state.Events().back())),
            WithoutSpec(stored));
}

TEST(Records, AMixtureIsRefusedWithoutEachOfItsDatasets) {
  const std::vector<DatasetIndexed> indexed = {DatasetAs("d1"),
                                               DatasetAs("d2", 70)};
  const JobCreated created = CreatedOf(MixedSpec(), indexed);
  State state;
  ASSERT_TRUE(state.Apply({{}, indexed[0], {}}).ok());
  const absl::Status missing = state.Apply({{}, created, {}});
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(missing)), HasSubstr("d2"));
  ASSERT_TRUE(state.Apply({{}, indexed[1], {}}).ok());
  JobCreated swapped = created;
  std::swap(swapped.dataset_ids[0], swapped.dataset_ids[1]);
  EXPECT_EQ(state.Apply({{}, swapped, {}}).code(), StatusCode::kDataLoss)
      << "the plan hash knows their order";
  ASSERT_TRUE(state.Apply({{}, created, {}}).ok());
  for (const char* id : {"d1", "d2"}) {
    EXPECT_THAT(state.JobsOf(id), ElementsAre("m"));
    EXPECT_EQ(state.Apply({{}, DatasetDeleted{id}, {}}).code(),
              StatusCode::kFailedPrecondition);
  }
  ASSERT_TRUE(state.Apply({{}, JobDeleted{"m"}, {}}).ok());
  for (const char* id : {"d1", "d2"})
    EXPECT_TRUE(state.Apply({{}, DatasetDeleted{id}, {}}).ok()) << id;
}

// As from a damaged store, or from a version that checks otherwise.
TEST(Records, AMixtureThatCannotBeReadIsKeptAndKeepsItsDatasets) {
  const std::vector<DatasetIndexed> indexed = {DatasetAs("d1"),
                                               DatasetAs("d2", 70)};
  stored::v1::Event proto;
  ASSERT_TRUE(proto.ParseFromString(
      EncodeEvent({{}, CreatedOf(MixedSpec(), indexed), {}})));
  const std::pair<const char*, std::function<void(stored::v1::JobCreated&)>>
      cases[] = {
          {"1 datasets for 2 sources",
           [](stored::v1::JobCreated& job) {
             job.mutable_dataset_ids()->RemoveLast();
           }},
          {"weights[1]",
           [](stored::v1::JobCreated& job) {
             v1::JobSpec spec;
             ASSERT_TRUE(spec.ParseFromString(job.spec()));
             spec.mutable_shares(1)->set_weights(0, -1);
             job.set_spec(spec.SerializeAsString());
           }},
          {"segments",
           [](stored::v1::JobCreated& job) {
             v1::JobSpec spec;
             ASSERT_TRUE(spec.ParseFromString(job.spec()));
             spec.clear_shares();
             job.set_spec(spec.SerializeAsString());
           }},
      };
  for (const auto& [why, change] : cases) {
    stored::v1::Event changed = proto;
    change(*changed.mutable_job_created());
    const std::string record = changed.SerializeAsString();
    State state;
    for (const DatasetIndexed& each : indexed) state.Replay({{}, each, {}});
    const absl::StatusOr<Event> event = DecodeEvent(record);
    ASSERT_TRUE(event.ok()) << event.status();
    state.Replay(*event);
    EXPECT_EQ(state.FindJob("m"), nullptr);
    ASSERT_THAT(state.set_aside(), SizeIs(1)) << why;
    EXPECT_THAT(std::get<SetAside>(state.set_aside()[0].kind).why,
                HasSubstr(why));
    EXPECT_EQ(EncodeEvent(state.Events().back()), record);
    EXPECT_EQ(state.Check({{}, DatasetDeleted{"d1"}, {}}).code(),
              StatusCode::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace leat::server
