// SPDX-License-Identifier: Apache-2.0
//
// For tests of the scheduler: shared memory, a device whose groups are finished
// when told, and a fixture that computes on the test's thread.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fake_rows.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {

inline constexpr size_t kBig = 100;

// Memory of `rows` slots of FakeWork's two fields, filled with 0xEE.
class FakeMemory : public SharedMemory {
 public:
  explicit FakeMemory(uint32_t rows, int device = -1)
      : rows_(rows),
        device_(device),
        bytes_(rows * (kBig + 8), std::byte{0xEE}),
        offsets_{0, rows * kBig} {}
  std::byte* base() const override { return bytes_.data(); }
  int device() const override { return device_; }
  uint32_t rows() const override { return rows_; }
  std::span<const uint64_t> field_offsets() const override { return offsets_; }
  // Returns the sample in a slot; 0xEE…EE: untouched.
  uint64_t At(uint32_t slot) const {
    uint64_t sample = 0;
    std::memcpy(&sample, base() + rows_ * kBig + slot * 8, 8);
    return sample;
  }
  std::byte First(uint32_t slot) const { return bytes_[slot * kBig]; }

 private:
  const uint32_t rows_;
  const int device_;
  mutable std::vector<std::byte> bytes_;
  const std::vector<uint64_t> offsets_;
};

inline constexpr uint64_t kUntouched = 0xEEEEEEEEEEEEEEEE;

// Returns a lease that calls `ended` when it ends.
inline std::shared_ptr<const void> MakeLease(std::function<void()> ended) {
  return {new int(0), [ended = std::move(ended)](int* p) {
            delete p;
            ended();
          }};
}

inline RowRequest Placed(RowRequest request,
                         std::shared_ptr<const SharedMemory> memory,
                         std::vector<uint32_t> slots,
                         std::shared_ptr<const void> lease = nullptr) {
  request.memory = std::move(memory);
  request.slots = std::move(slots);
  request.lease = std::move(lease);
  return request;
}

// A device of `slots` groups. Finishes them when told, or at once; rows are
// written when a group is finished.
class FakeDevice {
 public:
  explicit FakeDevice(std::shared_ptr<WakeSignal> wake, int slots)
      : wake_(std::move(wake)), free_(slots) {}
  ~FakeDevice() { EXPECT_EQ(stages, 0); }

  bool CanBegin() const { return free_ > 0; }
  bool Take() {
    if (free_ <= 0) return false;
    if (refuse.exchange(false)) {
      if (on_refuse) on_refuse();
      return false;
    }
    --free_;
    ++stages;
    return true;
  }
  void Return() {
    ++free_;
    --stages;
    wake_->Notify();
  }
  void Finish(std::function<void()> write, GroupStage::Done done) {
    ++finishes;
    if (inline_done) {
      write();
      return done(Rows(result));
    }
    MutexLock lock(&mu_);
    waiting_.emplace_back(std::move(write), std::move(done));
    changed_.NotifyAll();
  }
  // Finishes the group that has waited longest. Returns false if none waits.
  bool FinishOne(const absl::Status& status = absl::OkStatus()) {
    return FinishRows(Rows(status));
  }
  bool FinishRows(std::vector<absl::Status> rows) {
    std::pair<std::function<void()>, GroupStage::Done> next;
    {
      MutexLock lock(&mu_);
      if (waiting_.empty()) return false;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next.first();
    next.second(std::move(rows));
    return true;
  }
  size_t waiting() {
    MutexLock lock(&mu_);
    return waiting_.size();
  }
  void WaitOne() {
    MutexLock lock(&mu_);
    while (waiting_.empty()) changed_.Wait(&mu_);
  }

  std::atomic<bool> inline_done{false};
  absl::Status result;
  std::atomic<bool> refuse{false};  // the next BeginGroup
  std::function<void()> on_refuse;
  std::atomic<int> stages{0}, finishes{0};
  std::atomic<size_t> rows{0};  // of finished groups, including forgotten ones

 private:
  // More than any group has.
  static std::vector<absl::Status> Rows(const absl::Status& status) {
    if (status.ok()) return {};
    return std::vector<absl::Status>(1000, status);
  }
  const std::shared_ptr<WakeSignal> wake_;
  std::atomic<int> free_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::pair<std::function<void()>, GroupStage::Done>> waiting_
      ABSL_GUARDED_BY(mu_);
};

class StagedWork : public FakeWork, private GroupLimits {
 public:
  StagedWork(std::string key, FakeDevice* device)
      : FakeWork(std::move(key), kBig), device_(device) {}
  const GroupLimits& groups() const override { return *this; }
  bool staged(bool) const override { return true; }
  bool CanBegin(int) const override { return device_->CanBegin(); }
  std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const override {
    if (!device_->Take()) return nullptr;
    return std::make_unique<Stage>(this, outputs, device_);
  }

 private:
  class Stage : public GroupStage {
   public:
    Stage(const StagedWork* work, const GroupOutputs& outputs,
          FakeDevice* device)
        : work_(work),
          outputs_(outputs),
          device_(device),
          samples_(outputs.rows) {}
    ~Stage() override { device_->Return(); }
    absl::Status Prepare(size_t index, const RowOf& row,
                         ThreadState*) override {
      if (work_->on_compute) work_->on_compute(row.epoch, row.sample);
      samples_[index] = row.sample;
      if (row.sample == work_->bad_sample)
        return DataLoss("sample {} is bad", row.sample);
      return absl::OkStatus();
    }
    void Forget(size_t index) override { samples_[index].reset(); }
    void Finish(Done done) override {
      device_->rows = device_->rows + outputs_.rows;
      device_->Finish([this] { Write(); }, std::move(done));
    }

   private:
    void Write() {
      for (size_t row = 0; row < outputs_.rows; ++row) {
        if (!samples_[row]) continue;
        std::memset(outputs_.At(0, row), static_cast<int>(*samples_[row] & 255),
                    outputs_.field_bytes[0]);
        std::memcpy(outputs_.At(1, row), &*samples_[row], 8);
      }
    }
    const StagedWork* const work_;
    const GroupOutputs outputs_;
    FakeDevice* const device_;
    std::vector<std::optional<uint64_t>> samples_;  // without those forgotten
  };
  FakeDevice* const device_;
};

class PlacedTest : public testing::Test {
 protected:
  PlacedTest() : scheduler_(Options(), &pool_, wake_, clock_) {}
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.threads = 0;
    options.group_bytes = 4 * (kBig + 8);
    options.max_rows_per_group = 4;  // also with slots
    options.max_unsent_groups_per_stream = 3;
    return options;
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work) {
    auto id = scheduler_.OpenStream(std::move(work), sink_);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  int RunAll(int limit = 1'000'000) {
    int rows = 0;
    while (rows < limit && scheduler_.RunOne(nullptr)) ++rows;
    return rows;
  }
  std::shared_ptr<const void> Lease() {
    ++begun_;
    return MakeLease([this] { ++ended_; });
  }

  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{64 << 20, wake_};
  FakeDevice device_{wake_, 2};
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  std::atomic<int> begun_{0}, ended_{0};  // leases
  Scheduler scheduler_;
};

// A device of two groups.
class StagedTest : public PlacedTest {
 protected:
  std::shared_ptr<StagedWork> Staged(const std::string& key = "a") {
    return std::make_shared<StagedWork>(key, &device_);
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime()));
    EXPECT_EQ(device_.stages, 0);
    EXPECT_EQ(pool_.buffers_in_use(), 0u);
    EXPECT_EQ(ended_, begun_);
  }
};

// Stops a scheduler until no decode thread is left, and returns what is left.
// Waits repeatedly for some milliseconds, in vain for what never ends.
inline Scheduler::Left StopButFor(Scheduler& scheduler) {
  const MonotonicTime most = Clock::Real().Now() + std::chrono::seconds(30);
  while (true) {
    const MonotonicTime now = Clock::Real().Now();
    const Scheduler::Left left =
        scheduler.Stop(now + std::chrono::milliseconds(20));
    if (left.decode_threads == 0 || now > most) return left;
  }
}

}  // namespace leat::worker
