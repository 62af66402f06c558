// SPDX-License-Identifier: Apache-2.0
//
// Rows of many requests share a group, each with its own memory: they have the
// CPU's bytes.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/groups/job.h"
#include "tests/worker/scheduler/fake_rows.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {
namespace {

using ::testing::Each;
using testing::MakeJpeg;

TEST_F(HostGroupTest, RowsGoToMemoriesOfTheirOwnByACopyEach) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  const std::string file = MakeJpeg({.width = 90, .height = 80});
  std::vector<GroupMemory> memories(4, GroupMemory(pipeline.schema(), 3));
  std::vector<GroupOutputs> outputs;
  std::vector<RowTarget> targets;
  for (GroupMemory& memory : memories) {
    outputs.push_back(memory.Outputs(3));
    for (size_t place = 0; place < 3; ++place)
      targets.push_back(
          {outputs.back().base, outputs.back().offsets.data(), place});
  }
  const auto group =
      pipeline.kernel().BeginGroup({.rows = targets.size(),
                                    .field_bytes = outputs[0].field_bytes,
                                    .targets = targets});
  for (size_t row = 0; row < targets.size(); ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, file).ok());
  // One memory is no longer wanted, and one row of another.
  for (const size_t row : {3, 4, 5, 7}) group->Forget(row);
  const uint64_t before = options_.stats->copies_to_host.load();
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok()) << status;
  // The last one has the words of rows whose codes were refused.
  EXPECT_EQ(options_.stats->copies_to_host.load() - before, 1u + 0 + 2 + 1 + 1);
  for (size_t row = 0; row < targets.size(); ++row) {
    const RowBytes got = memories[row / 3].Row(outputs[row / 3], row % 3);
    // The label is written when a row is prepared.
    if (row / 3 == 1 || row == 7)
      EXPECT_THAT(std::span(got).first(outputs[0].field_bytes[0]),
                  Each(std::byte{0x77}))
          << row;
    else
      EXPECT_EQ(got, *pipeline.OnCpu(file, row)) << row;
  }
}

TEST_F(GpuJobTest, OneRowRequestsOfManyStreamsAreOneGroup) {
  constexpr uint32_t kRows = 96, kStreams = 6;
  Open();
  WriteFiles(kRows);
  OpenJob(CropGraph(32, dir_.path()), kRows);
  {
    BufferPool pool(256 << 20, wake_, gpus_->buffer_memory());
    Scheduler scheduler({.threads = 0,
                         .group_bytes = config_.group_bytes,
                         .max_rows_per_group = kMaxGpuGroupRows},
                        &pool, wake_, Clock::Real());
    const auto sink = std::make_shared<FakeSink>();
    std::vector<Scheduler::StreamId> streams;
    for (uint32_t i = 0; i < kStreams; ++i)
      streams.push_back(*scheduler.OpenStream(gpu_, sink));
    for (uint32_t row = 0; row < kRows; ++row)
      ASSERT_TRUE(
          scheduler
              .Ask(streams[row % kStreams],
                   {.request_id = row + 1, .rows = {row}, .samples = {row}})
              .ok());
    while (scheduler.RunOne(state_.get())) {
    }
    sink->WaitRows(kRows);
    for (const FinishedGroup& group : sink->Take()) {
      ASSERT_TRUE(group.status.ok()) << group.status;
      ASSERT_EQ(group.rows.size(), 1u);
      EXPECT_EQ(group.request_id, group.rows[0] + 1);
      EXPECT_EQ(RowBytes(group.payload.begin(), group.payload.end()),
                *OnCpu({.row = group.rows[0], .sample = group.rows[0]}))
          << group.rows[0];
    }
    ASSERT_TRUE(scheduler.Stop().none());
    const GpuStats stats = gpus_->stats()[0];
    EXPECT_EQ(stats.groups_total, 1u);
    EXPECT_EQ(stats.rows_total(), kRows);
  }
}

TEST_F(GpuJobTest, PaddingIsMarkedWhateverBecomesOfBadSamples) {
  Open();
  WriteFiles(6);
  Write(2, "no image");  // sample 4, as classes are in order
  for (const BadSamplePolicy policy :
       {BadSamplePolicy::kReplace, BadSamplePolicy::kZero}) {
    OpenJob(CropGraph(32, dir_.path()), 4, policy, LastBatch::kMask);
    std::vector<RowOf> rows;
    for (uint32_t row = 0; row < 4; ++row)
      rows.push_back({.step = 1, .row = row, .sample = std::min(4 + row, 5u)});
    const auto results = OnGpu(rows);
    std::string valid;
    for (uint32_t row = 0; row < 4; ++row) {
      ASSERT_TRUE(results[row].ok()) << results[row].status();
      EXPECT_EQ(*results[row], *OnCpu(rows[row])) << row;
      valid += results[row]->back() == std::byte{1} ? '1' : '0';
    }
    EXPECT_EQ(valid, policy == BadSamplePolicy::kZero ? "0100" : "1100");
  }
}

}  // namespace
}  // namespace leat::worker
