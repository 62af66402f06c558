// SPDX-License-Identifier: Apache-2.0
//
// GpuTest: a GPU worker on the fake driver.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/gpu/gpu_support.h"

namespace leat::worker {

// decode, random_resized_crop to size × size, flip; image and label.
inline Graph CropGraph(int64_t size) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", std::string("/data")}}},
                 {"decode", {{0, 0}}, {}},
                 {"random_resized_crop",
                  {{1, 0}},
                  {{"size", std::vector<int64_t>{size, size}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

class GpuTest : public ::testing::Test {
 protected:
  GpuTest() {
    config_.slot_bytes = 16 << 20;
    config_.group_bytes = 8 << 20;
  }
  ~GpuTest() override {
    gpus_.reset();
    for (const char* name : set_) unsetenv(name);
  }
  void Set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    set_.push_back(name);
  }
  void WithoutEngines() { Set("TF_NOHW", "1"); }
  void WithGpus(int count) { Set("TF_COUNT", std::to_string(count)); }
  void SetUp() override {
    if (std::getenv("LEAT_CUDA_LIBRARY") == nullptr)
      GTEST_SKIP() << "LEAT_CUDA_LIBRARY does not name the fake driver";
  }
  void Open() {
    auto gpus = GpuWorker::Open(
        config_, {}, wake_,
        [this](const absl::Status& status) { fatal_ = status; });
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    gpus_ = *std::move(gpus);
    ASSERT_FALSE(gpus_->devices().empty());
  }
  int SlotsInUse() const {
    int used = 0;
    for (const GpuStats& stats : gpus_->stats()) used += stats.slots_in_use;
    return used;
  }
  // Every row is computed, and as the CPU does it.
  void ExpectExact(GpuPipeline& pipeline,
                   const std::vector<std::string>& files) {
    const GroupResult result = pipeline.Run(files);
    for (const auto* statuses : {&result.prepared, &result.computed})
      for (const absl::Status& status : *statuses)
        ASSERT_TRUE(status.ok()) << status;
    for (size_t row = 0; row < files.size(); ++row) {
      const auto expected = pipeline.OnCpu(files[row], row);
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_EQ(result.rows[row], *expected) << "row " << row;
    }
    EXPECT_EQ(SlotsInUse(), 0);
  }

  GpuConfig config_;
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  absl::Status fatal_;
  std::unique_ptr<GpuWorker> gpus_;
  std::vector<const char*> set_;
};

}  // namespace leat::worker
