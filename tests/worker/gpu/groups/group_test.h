// SPDX-License-Identifier: Apache-2.0
//
// GroupTest: a GPU worker of any platform; HostGroupTest: one whose devices are
// the host.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "gtest/gtest.h"
#include "tests/support/host_device.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/gpu/support.h"
#include "worker/gpu/gpus.h"

namespace leat::worker {

// A clock that only Advance moves, while other threads read it.
class TestClock final : public Clock {
 public:
  MonotonicTime Now() const override {
    return MonotonicTime(Duration(elapsed_.load()));
  }
  WallTime WallNow() const override { return Clock::Real().WallNow(); }
  void Advance(Duration duration) { elapsed_ += duration.count(); }

 private:
  std::atomic<Duration::rep> elapsed_{0};
};

class GroupTest : public ::testing::Test {
 protected:
  GroupTest() {
    config_.slot_bytes = 16 << 20;
    config_.group_bytes = 8 << 20;
    // Groups may take any time on the tests' machine.
    config_.clock = &clock_;
  }
  void Use(absl::StatusOr<std::unique_ptr<GpuWorker>> gpus) {
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    gpus_ = *std::move(gpus);
    ASSERT_FALSE(gpus_->devices().empty());
  }
  std::function<void(const absl::Status&)> OnFatal() {
    return [this](const absl::Status& status) { fatal_ = status; };
  }
  int SlotsInUse() const {
    int used = 0;
    for (const GpuStats& stats : gpus_->stats()) used += stats.slots_in_use;
    return used;
  }
  // Expects every row to be computed, with the CPU's bytes.
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

  TestClock clock_;
  GpuConfig config_;
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  absl::Status fatal_;  // the status given to on_fatal
  std::unique_ptr<GpuWorker> gpus_;
};

class HostGroupTest : public GroupTest {
 protected:
  ~HostGroupTest() override { Close(); }
  void Open() {
    Use(OpenGpus([this] { return MakeHostPlatform(options_); }, config_, {},
                 wake_, OnFatal()));
  }
  // Checks that nothing is left over.
  void Close() {
    gpus_.reset();
    EXPECT_TRUE(fatal_.ok()) << fatal_;
    EXPECT_EQ(options_.stats->live.load(), 0);
  }

  HostDeviceOptions options_;
};

}  // namespace leat::worker
