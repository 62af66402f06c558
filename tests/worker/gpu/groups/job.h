// SPDX-License-Identifier: Apache-2.0
//
// GpuJobTest: a job over files, computed by a GPU worker whose device is the
// host, and by the CPU.
#pragma once

#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/groups/group_test.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {

class GpuJobTest : public HostGroupTest {
 protected:
  // Files are of three classes.
  static std::string NameOf(size_t i) {
    return "k" + std::to_string(i % 3) + "/" + std::to_string(100 + i) + ".jpg";
  }
  void Write(size_t i, const std::string& file) { dir_.Write(NameOf(i), file); }
  void WriteFiles(size_t files) {
    for (size_t i = 0; i < files; ++i)
      Write(i, testing::MakeJpeg({.width = 90 + static_cast<int>(i),
                                  .height = 80,
                                  .seed = static_cast<uint32_t>(i)}));
  }
  // Opens a job of the existing files, in order; the last batch may be partial.
  void OpenJob(const Graph& graph, uint32_t batch,
               BadSamplePolicy policy = BadSamplePolicy::kFail,
               LastBatch last_batch = LastBatch::kPartial) {
    FakeJob job;
    JobSpec& spec = job.info.spec;
    spec.name = "job";
    spec.batch = batch;
    spec.order = Order::kSequential;
    spec.last_batch = last_batch;
    spec.on_bad_sample = policy;
    spec.pipeline = graph;
    auto finished = FinishFakeJob(std::move(job));
    ASSERT_TRUE(finished.ok()) << finished.status();
    auto source =
        OpenSource(finished->info.spec.pipeline.nodes[0], finished->blob, {});
    ASSERT_TRUE(source.ok()) << source.status();
    const std::shared_ptr<const Source> shared = *std::move(source);
    // Files are rewritten between jobs, which a cache cannot notice.
    gpu_.reset();
    cpu_.reset();
    of_gpu_ = {.cache = &cache_.emplace(64 << 20),
               .bad_samples = &bad_,
               .ownership = &ownership_};
    of_cpu_ = of_gpu_;
    of_gpu_.kernels = gpus_->kernels();
    of_cpu_.kernels = ImageKernels({});
    state_ = of_gpu_.kernels.make_thread_state();
    gpu_ = *JobRuntime::Create(finished->info, {shared}, &of_gpu_);
    cpu_ = *JobRuntime::Create(finished->info, {shared}, &of_cpu_);
  }

  // Returns a row's fields, one after the other.
  absl::StatusOr<RowBytes> OnCpu(const RowOf& row) {
    size_t total = 0;
    for (const size_t bytes : cpu_->field_bytes()) total += bytes;
    RowBytes all(total);
    std::vector<std::span<std::byte>> fields;
    for (size_t at = 0; const size_t bytes : cpu_->field_bytes()) {
      fields.push_back(std::span(all).subspan(at, bytes));
      at += bytes;
    }
    RETURN_IF_ERROR(cpu_->Compute(row, state_.get(), fields));
    return all;
  }

  // Computes the rows as one group.
  std::vector<absl::StatusOr<RowBytes>> OnGpu(const std::vector<RowOf>& rows) {
    BatchSchema schema;
    for (const size_t bytes : gpu_->field_bytes())
      schema.fields.push_back({.row_bytes = bytes});
    GroupMemory memory(schema, rows.size());
    const GroupOutputs outputs = memory.Outputs(rows.size());
    const auto stage = gpu_->BeginGroup(outputs);
    std::vector<absl::Status> statuses;
    for (size_t i = 0; i < rows.size(); ++i) {
      statuses.push_back(stage->Prepare(i, rows[i], state_.get()));
      if (!statuses.back().ok()) stage->Forget(i);
    }
    std::latch done(1);
    stage->Finish([&](const std::vector<absl::Status>& computed) {
      for (size_t i = 0; i < computed.size(); ++i)
        statuses[i].Update(computed[i]);
      done.count_down();
    });
    done.wait();
    std::vector<absl::StatusOr<RowBytes>> results;
    for (size_t i = 0; i < rows.size(); ++i)
      if (statuses[i].ok())
        results.emplace_back(memory.Row(outputs, i));
      else
        results.emplace_back(statuses[i]);
    return results;
  }

  // Returns the rows of a step that hold samples.
  std::vector<RowOf> RowsOf(uint64_t epoch, uint64_t step) const {
    const Plan& plan = gpu_->plan();
    std::vector<RowOf> rows;
    for (uint32_t row = 0; row < plan.rows_in(step); ++row) {
      uint64_t sample;
      plan.Samples(epoch, step, std::span(&row, 1), std::span(&sample, 1));
      rows.push_back(
          {.epoch = epoch, .step = step, .row = row, .sample = sample});
    }
    return rows;
  }
  // Expects the same statuses of both for these rows, and the same samples
  // reported.
  void ExpectCpus(const std::vector<RowOf>& rows, const std::string& where) {
    const auto results = OnGpu(rows);
    const BadSamples::Report of_gpu = bad_.Take();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto expected = OnCpu(rows[i]);
      ASSERT_EQ(results[i].status(), expected.status())
          << where << " row " << i;
      (expected.ok() ? good_ : failed_) += 1;
      if (expected.ok()) {
        ASSERT_EQ(*results[i], *expected) << where << " row " << i;
      }
    }
    const BadSamples::Report of_cpu = bad_.Take();
    ASSERT_EQ(of_gpu.size(), of_cpu.size()) << where;
    if (of_cpu.empty()) return;
    const auto &got = of_gpu.at("job"), &want = of_cpu.at("job");
    ASSERT_EQ(got.size(), want.size()) << where;
    for (const auto& [sample, entry] : want) {
      ASSERT_TRUE(got.contains(sample)) << where << " sample " << sample;
      EXPECT_EQ(got.at(sample).reason, entry.reason) << where;
      EXPECT_EQ(got.at(sample).count, entry.count) << where;
    }
  }
  void ExpectCpusEpochs(const std::string& where) {
    for (uint64_t epoch = 0; epoch < 2; ++epoch)
      for (uint64_t step = 0; step < gpu_->plan().steps_per_epoch(); ++step)
        ExpectCpus(RowsOf(epoch, step), where + " epoch " +
                                            std::to_string(epoch) + " step " +
                                            std::to_string(step));
  }

  const TempDir dir_;
  std::optional<SampleCache> cache_;
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext of_gpu_, of_cpu_;
  std::unique_ptr<ThreadState> state_;
  std::shared_ptr<const JobRuntime> gpu_, cpu_;
  int good_ = 0, failed_ = 0;  // rows that were compared
};

}  // namespace leat::worker
