// SPDX-License-Identifier: Apache-2.0
//
// Work for a scheduler whose rows are easily distinguished, and a sink.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

// Two fields: `big` bytes that all hold the sample's low byte, and the sample.
class FakeWork : public RowWork {
 public:
  explicit FakeWork(std::string key, size_t big = 100)
      : key_(std::move(key)), bytes_{big, sizeof(uint64_t)} {}
  const std::string& job_key() const override { return key_; }
  std::span<const size_t> field_bytes() const override { return bytes_; }
  uint64_t steps_per_epoch() const override { return 1000; }
  absl::Status Compute(
      const RowOf& row, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    const uint64_t sample = row.sample;
    if (on_compute) on_compute(row.epoch, sample);
    if (sample == bad_sample) {
      if (row.bad != nullptr) *row.bad = true;
      return DataLoss("sample {} is bad", sample);
    }
    std::memset(outputs[0].data(), static_cast<int>(sample & 255),
                outputs[0].size());
    std::memcpy(outputs[1].data(), &sample, sizeof sample);
    return absl::OkStatus();
  }
  std::function<void(uint64_t, uint64_t)> on_compute;
  uint64_t bad_sample = ~uint64_t{0};

 private:
  const std::string key_;
  const std::vector<size_t> bytes_;
};

// Its rows may be shared with those of works with the same key.
class SharedWork : public FakeWork {
 public:
  SharedWork(std::string job, Digest key, size_t big = 100)
      : FakeWork(std::move(job), big), key_(key) {}
  const Digest* sharing_key() const override { return &key_; }
  RowKey KeyOf(const RowOf& row) const override {
    return {.epoch = row.epoch, .sample = row.sample};
  }

 private:
  const Digest key_;
};

// Keeps the groups that it gets until told to drop them.
class FakeSink : public GroupSink {
 public:
  void OnGroup(FinishedGroup group) override {
    MutexLock lock(&mu_);
    groups_.push_back(std::move(group));
    if (!keep_) groups_.back().owner.reset();
    changed_.NotifyAll();
  }
  void KeepNothing() {
    MutexLock lock(&mu_);
    keep_ = false;
  }
  std::vector<FinishedGroup> Take() {
    MutexLock lock(&mu_);
    return std::exchange(groups_, {});
  }
  size_t size() {
    MutexLock lock(&mu_);
    return groups_.size();
  }
  void WaitRows(size_t rows) {
    MutexLock lock(&mu_);
    while (Rows() < rows) changed_.Wait(&mu_);
  }

 private:
  size_t Rows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t rows = 0;
    for (const FinishedGroup& group : groups_) rows += group.rows.size();
    return rows;
  }
  Mutex mu_;
  CondVar changed_;
  bool keep_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<FinishedGroup> groups_ ABSL_GUARDED_BY(mu_);
};

inline RowRequest MakeRequest(uint64_t id, uint64_t epoch, uint64_t step,
                              uint64_t first, uint32_t rows) {
  RowRequest request{.request_id = id, .epoch = epoch, .step = step};
  for (uint32_t i = 0; i < rows; ++i) {
    request.rows.push_back(i);
    request.samples.push_back(first + i);
  }
  return request;
}

}  // namespace leat::worker
