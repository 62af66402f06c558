// SPDX-License-Identifier: Apache-2.0
#include "server/state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job_check.h"
#include "tests/server/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

DatasetIndexed Indexed(const std::string& id, const std::string& name = "n") {
  DatasetIndexed indexed;
  indexed.dataset.id = id;
  indexed.dataset.name = name;
  indexed.dataset.shards = *ShardTable::Uniform(1000, 10);
  return indexed;
}

// With an operator that GPUs lack.
JobCreated Created(const std::string& name, const DatasetIndexed& dataset) {
  JobSpec spec = SpecOf(name, "/d");
  spec.pipeline.nodes.push_back({"jpeg_compression_distortion", {{2, 0}}, {}});
  spec.pipeline.outputs[0].second.node = 3;
  const PreparedJob job = *Prepare(spec);
  return {job.spec, dataset.dataset.id, job.schema,
          PlanHash(job.spec, dataset.dataset), job.not_on_gpu};
}

TEST(State, RefusesWhatDoesNotFitAndStaysAsItWas) {
  State state;
  const DatasetIndexed dataset = Indexed("d1");
  const JobCreated job = Created("j", dataset);
  EXPECT_EQ(state.Apply({{}, job}).code(), StatusCode::kNotFound);
  EXPECT_EQ(state.Apply({{}, DatasetDeleted{"d1"}}).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(state.Apply({{}, JobDeleted{"j"}}).code(), StatusCode::kNotFound);
  ASSERT_TRUE(state.Apply({{}, dataset}).ok());
  EXPECT_EQ(state.Apply({{}, dataset}).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(state.Apply({{}, job}).ok());
  EXPECT_EQ(state.Apply({{}, job}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(state.Apply({{}, DatasetDeleted{"d1"}}).code(),
            StatusCode::kFailedPrecondition);
  JobCreated forged = Created("k", dataset);
  forged.plan_hash[3] ^= 1;
  EXPECT_EQ(state.Apply({{}, forged}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(state.jobs().size(), 1u);
  EXPECT_EQ(state.datasets().size(), 1u);
}

TEST(State, DrainsAreIdempotent) {
  State state;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(state.Apply({{}, WorkerDrained{"a"}}).ok());
  EXPECT_EQ(state.drained().size(), 1u);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(state.Apply({{}, WorkerUndrained{"a"}}).ok());
  EXPECT_TRUE(state.drained().empty());
}

TEST(State, ItsEventsMakeTheSameStateAgain) {
  State state;
  const DatasetIndexed one = Indexed("d1"), two = Indexed("d2");
  const WallTime at{seconds(3)};
  for (const Event& event : std::vector<Event>{{at, two},
                                               {at, one},
                                               {at, Created("j", two)},
                                               {at, Created("k", one)},
                                               {at, JobDeleted{"k"}},
                                               {at, WorkerDrained{"w"}}})
    ASSERT_TRUE(state.Apply(event).ok());
  State again;
  for (const Event& event : state.Events())
    ASSERT_TRUE(again.Apply(event).ok());
  EXPECT_EQ(again.datasets().size(), 2u);
  ASSERT_NE(again.FindJob("j"), nullptr);
  EXPECT_EQ(again.FindJob("j")->created_at, at);
  EXPECT_EQ(again.FindJob("j")->not_on_gpu,
            "node 3 (jpeg_compression_distortion) has no device form");
  EXPECT_EQ(again.FindJob("j")->info->plan_hash,
            state.FindJob("j")->info->plan_hash);
  EXPECT_EQ(again.FindJob("k"), nullptr);
  EXPECT_EQ(again.drained(), state.drained());
}

TEST(State, DatasetsAreFoundByIdPrefixAndName) {
  State state;
  ASSERT_TRUE(state.Apply({{}, Indexed("aabbcc11", "cats")}).ok());
  ASSERT_TRUE(state.Apply({{}, Indexed("aabbdd22", "dogs")}).ok());
  EXPECT_EQ((*state.ResolveDataset("aabbcc11"))->info.name, "cats");
  EXPECT_EQ((*state.ResolveDataset("aabbd"))->info.name, "dogs");
  EXPECT_EQ((*state.ResolveDataset("cats"))->info.id, "aabbcc11");
  EXPECT_EQ(state.ResolveDataset("aabb").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(state.ResolveDataset("aab").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(state.ResolveDataset("").status().code(), StatusCode::kNotFound);
}

TEST(Prepare, UnderZeroTheBatchSaysWhichRowsAreValid) {
  JobSpec spec = SpecOf("j", "/d");
  EXPECT_EQ(Prepare(spec)->schema.fields.size(), 2u);
  spec.on_bad_sample = BadSamplePolicy::kZero;
  const PreparedJob job = *Prepare(spec);
  ASSERT_EQ(job.schema.fields.size(), 3u);
  EXPECT_EQ(job.schema.fields[2].name, kValidField);
  EXPECT_EQ(job.schema.fields[2].row_bytes, 1u);
}

TEST(Prepare, TheDatasetIsItsReader) {
  const PreparedJob one = *Prepare(SpecOf("a", "/d"));
  const PreparedJob two = *Prepare(SpecOf("b", "/d", 32));
  const PreparedJob other = *Prepare(SpecOf("a", "/e"));
  EXPECT_EQ(one.dataset_id, two.dataset_id);
  EXPECT_NE(one.dataset_id, other.dataset_id);
  EXPECT_EQ(one.dataset_id.size(), 64u);
}

}  // namespace
}  // namespace leat::server
