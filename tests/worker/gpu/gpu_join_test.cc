// SPDX-License-Identifier: Apache-2.0
//
// Rows of many asks through a GPU together, each to a memory of its own: the
// same bytes as the CPU's.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "gmock/gmock.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/fake_job.h"
#include "tests/worker/fake_rows.h"
#include "tests/worker/gpu/group_test.h"
#include "worker/scheduler.h"

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
  // One memory that nobody wants, and one row of another.
  for (const size_t row : {3, 4, 5, 7}) group->Forget(row);
  const uint64_t before = options_.stats->copies_to_host.load();
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(options_.stats->copies_to_host.load() - before, 1u + 0 + 2 + 1);
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

// A job over JPEG files, computed by the GPU and by the CPU.
class GpuJoinTest : public HostGroupTest {
 protected:
  void OpenJob(size_t files) {
    for (size_t i = 0; i < files; ++i)
      dir_.Write("k/" + std::to_string(100 + i) + ".jpg",
                 MakeJpeg({.width = 90 + static_cast<int>(i),
                           .height = 80,
                           .seed = static_cast<uint32_t>(i)}));
    FakeJob job;
    job.info.spec.name = "job";
    job.info.spec.batch = static_cast<uint32_t>(files);
    job.info.spec.order = Order::kSequential;
    job.info.spec.pipeline = CropGraph(32, dir_.path());
    auto finished = FinishFakeJob(std::move(job));
    ASSERT_TRUE(finished.ok()) << finished.status();
    auto source =
        OpenSource(finished->info.spec.pipeline.nodes[0], finished->blob, {});
    ASSERT_TRUE(source.ok()) << source.status();
    const std::shared_ptr<const Source> shared = *std::move(source);
    for (RuntimeContext* context : {&of_gpu_, &of_cpu_})
      *context = {
          .cache = &cache_, .bad_samples = &bad_, .ownership = &ownership_};
    of_gpu_.kernels = gpus_->kernels();
    of_cpu_.kernels = ImageKernels({});
    gpu_ = *JobRuntime::Create(finished->info, shared, 1, &of_gpu_);
    cpu_ = *JobRuntime::Create(finished->info, shared, 1, &of_cpu_);
  }
  RowBytes OnCpu(uint32_t row) {
    const auto bytes = cpu_->field_bytes();
    RowBytes all(bytes[0] + bytes[1]);
    const std::span<std::byte> fields[] = {std::span(all).first(bytes[0]),
                                           std::span(all).subspan(bytes[0])};
    const auto state = of_cpu_.kernels.make_thread_state();
    const absl::Status status =
        cpu_->Compute({.row = row, .sample = row}, state.get(), fields);
    EXPECT_TRUE(status.ok()) << status;
    return all;
  }

  const TempDir dir_;
  SampleCache cache_{64 << 20};
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext of_gpu_, of_cpu_;
  std::shared_ptr<const JobRuntime> gpu_, cpu_;
};

TEST_F(GpuJoinTest, OneRowAsksOfManyStreamsAreOneGroup) {
  constexpr uint32_t kRows = 96, kStreams = 6;
  Open();
  OpenJob(kRows);
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
      ASSERT_TRUE(scheduler
                      .Ask(streams[row % kStreams],
                           {.ask_id = row + 1, .rows = {row}, .samples = {row}})
                      .ok());
    const auto state = of_gpu_.kernels.make_thread_state();
    while (scheduler.RunOne(state.get())) {
    }
    sink->WaitRows(kRows);
    for (const FinishedGroup& group : sink->Take()) {
      ASSERT_TRUE(group.status.ok()) << group.status;
      ASSERT_EQ(group.rows.size(), 1u);
      EXPECT_EQ(group.ask_id, group.rows[0] + 1);
      EXPECT_EQ(RowBytes(group.payload.begin(), group.payload.end()),
                OnCpu(group.rows[0]))
          << group.rows[0];
    }
    ASSERT_TRUE(scheduler.Stop().none());
    const GpuStats stats = gpus_->stats()[0];
    EXPECT_EQ(stats.groups_total, 1u);
    EXPECT_EQ(stats.rows_total(), kRows);
  }
  gpu_.reset();  // before the GPUs
}

}  // namespace
}  // namespace leat::worker
