// SPDX-License-Identifier: Apache-2.0
//
// Storage that holds records up, work whose rows are read ahead from it, and a
// fixture with both.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fixture.h"

namespace leat::worker {

inline constexpr size_t kRecordBytes = 1000;

// Storage whose records come when they are released, or at once.
class FakeStorage {
 public:
  // Reads of these wait from now on.
  void Hold(uint64_t first, uint64_t count = 1) {
    MutexLock lock(&mu_);
    for (uint64_t i = 0; i < count; ++i) held_.insert(first + i);
  }
  void Release(uint64_t sample) {
    MutexLock lock(&mu_);
    held_.erase(sample);
    changed_.NotifyAll();
  }
  void ReleaseAll() {
    MutexLock lock(&mu_);
    held_.clear();
    changed_.NotifyAll();
  }
  // Waits until `count` reads have begun.
  void WaitBegun(size_t count) {
    MutexLock lock(&mu_);
    while (order_.size() < count) changed_.Wait(&mu_);
  }
  std::vector<uint64_t> order() {
    MutexLock lock(&mu_);
    return order_;
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) {
    {
      MutexLock lock(&mu_);
      order_.push_back(sample);
      changed_.NotifyAll();
      while (held_.contains(sample)) changed_.Wait(&mu_);
    }
    if (sample == missing) return NotFound("record {}: gone", sample);
    ++live;
    const std::shared_ptr<std::vector<std::byte>> bytes(
        new std::vector<std::byte>(kRecordBytes),
        [this](const std::vector<std::byte>* record) {
          delete record;
          --live;
        });
    StoredSample stored;
    stored.fields.push_back({.bytes = *bytes, .shape = {}});
    stored.owner = bytes;
    return stored;
  }
  uint64_t missing = ~uint64_t{0};
  std::atomic<int> live{0};  // records in memory

 private:
  Mutex mu_;
  CondVar changed_;
  std::set<uint64_t> held_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> order_ ABSL_GUARDED_BY(mu_);  // as they began
};

// FakeWork whose rows are read ahead, which it checks.
class ReadingWork : public FakeWork {
 public:
  ReadingWork(std::string key, FakeStorage* storage)
      : FakeWork(std::move(key), kBig), storage_(storage) {}
  bool reads_ahead() const override { return true; }
  RowRecords ReadAhead(const RowOf& row) const override {
    if (on_read) on_read();
    return {{.sample = row.sample, .stored = storage_->Read(row.sample)}};
  }
  absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override {
    if (row.records == nullptr || row.records->size() != 1 ||
        row.records->front().sample != row.sample)
      return Internal("row {} comes without its record", row.row);
    RETURN_IF_ERROR(row.records->front().stored.status());
    return FakeWork::Compute(row, state, outputs);
  }
  size_t CountTogether(std::span<const uint64_t> samples) const override {
    return std::min(samples.size(), together);
  }
  std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const override {
    {
      MutexLock lock(&mu_);
      requests_.push_back(rows.size());
    }
    return FakeWork::ReadTogether(rows);
  }
  std::vector<size_t> requests() const {
    MutexLock lock(&mu_);
    return requests_;
  }
  std::function<void()> on_read;
  size_t together = 1;  // constant while rows are requested

 private:
  FakeStorage* const storage_;
  mutable Mutex mu_;
  mutable std::vector<size_t> requests_ ABSL_GUARDED_BY(mu_);  // their rows
};

class StagedReadingWork : public StagedWork {
 public:
  StagedReadingWork(FakeDevice* device, FakeStorage* storage,
                    std::string key = "staged")
      : StagedWork(std::move(key), device), storage_(storage) {}
  bool reads_ahead() const override { return true; }
  RowRecords ReadAhead(const RowOf& row) const override {
    return {{.sample = row.sample, .stored = storage_->Read(row.sample)}};
  }

 private:
  FakeStorage* const storage_;
};

class ReadAheadTest : public testing::Test {
 protected:
  // Two rows per group.
  ReadAheadTest() {
    options_.threads = 2;
    options_.group_bytes = 2 * (kBig + 8);
    options_.max_unsent_groups_per_stream = 3;
    options_.read_threads = 8;
    sink_->KeepNothing();
  }
  ~ReadAheadTest() override { storage_.ReleaseAll(); }
  Scheduler& scheduler() {
    if (scheduler_ == nullptr)
      scheduler_ =
          std::make_unique<Scheduler>(options_, &pool_, wake_, Clock::Real());
    return *scheduler_;
  }
  std::shared_ptr<ReadingWork> Job(const std::string& key) {
    return std::make_shared<ReadingWork>(key, &storage_);
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work,
                           std::shared_ptr<GroupSink> sink) {
    auto id = scheduler().OpenStream(std::move(work), std::move(sink));
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  void Ask(Scheduler::StreamId id, RowRequest request) {
    const absl::Status status = scheduler().Ask(id, std::move(request));
    EXPECT_TRUE(status.ok()) << status;
  }

  SchedulerOptions options_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{64 << 20, wake_};
  FakeStorage storage_;
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace leat::worker
