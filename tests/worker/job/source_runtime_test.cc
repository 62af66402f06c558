// SPDX-License-Identifier: Apache-2.0
#include "worker/job/source_runtime.h"

#include <memory>
#include <string>
#include <vector>

#include "core/plan/checked_job.h"
#include "tests/worker/image/base/stored_image.h"
#include "tests/worker/job/job_fixture.h"

namespace leat::worker {
namespace {

class SourceRuntimeTest : public JobTest {
 protected:
  uint64_t first_ = 0;  // the number of the source's first sample
  absl::StatusOr<std::unique_ptr<const SourceRuntime>> Open(
      const FakeJob& job, const FakeJob& index_of) {
    const Node& reader = job.info.spec.pipeline.nodes[0];
    auto source = OpenSource(reader, index_of.blob, SourceLimits{});
    EXPECT_TRUE(source.ok()) << source.status();
    auto checked = CheckJob(job.info.spec);
    EXPECT_TRUE(checked.ok()) << checked.status();
    JobKernels kernels(&context_, DecoderClass::kExact, Epilogue::kWorker);
    return SourceRuntime::Create(job.info, 0, first_,
                                 std::move(checked->sources[0]),
                                 *std::move(source), &context_, &kernels);
  }
};

TEST_F(SourceRuntimeTest, DrawsAreKeyedByTheJobsSeedAndTheRowsPass) {
  FakeJob job = Job();
  job.info.spec.seed = 41;
  const auto source = Open(job, job);
  ASSERT_TRUE(source.ok()) << source.status();
  const RowInput input =
      (*source)->InputOf({.epoch = 3, .step = 7, .row = 1, .sample = 5}, 9, 4);
  EXPECT_EQ(input.seed, 41u);
  EXPECT_EQ(input.epoch, 9u) << "the pass, not the epoch of the step";
  EXPECT_EQ(input.sample, 4u) << "a substitute, not the row's own sample";
  EXPECT_EQ(input.step, 7u);
  EXPECT_EQ(input.step_epoch, 3u);
  EXPECT_FALSE((*source)->supplied());
  EXPECT_FALSE((*source)->has_partners());
}

TEST_F(SourceRuntimeTest, AnIndexOfAnotherNumberOfSamplesIsRefused) {
  const FakeJob before = Job();
  dir_.Write("k/g.jpg", "g");
  const FakeJob after = Job();
  const auto source = Open(before, after);
  EXPECT_TRUE(absl::IsFailedPrecondition(source.status()));
  EXPECT_EQ(Message(source.status()),
            "job job: its index has 7 samples, its dataset 6");
}

// The base has one shard, and the packed rows have two.
TEST_F(SourceRuntimeTest, CachesKeepPackedRowsByTheShardsOfThese) {
  for (const char c : std::string("abcdef"))
    dir_.Write(std::string("k/") + c + ".jpg", std::string(150'000, c));
  FakeJob job = Job();
  DatasetInfo& dataset = job.info.datasets[0];
  dataset.id = "packed";
  dataset.shards = *ShardTable::Uniform(6, 6);
  dataset.base = std::make_shared<const DatasetInfo>(dataset);
  dataset.arrangement = "pack(how=cut)\n";
  dataset.shards = *ShardTable::Uniform(6, 3);
  const auto source = Open(job, job);
  ASSERT_TRUE(source.ok()) << source.status();
  const RecordReader& records = (*source)->records();
  for (uint64_t sample = 0; sample < 6; ++sample)
    ASSERT_TRUE(records.Read({.sample = sample}).ok()) << sample;
  cache_.SetOwned("packed", {true, false});
  const std::vector<std::byte> large(200'000);
  cache_.Put(cache_.Open(HashOf("other"), "other", "other", 1), {.number = 0},
             StoredImage(large, 1));
  for (uint64_t sample = 0; sample < 6; ++sample)
    EXPECT_EQ(records.FindKept(sample).has_value(), sample < 3) << sample;
}

}  // namespace
}  // namespace leat::worker
