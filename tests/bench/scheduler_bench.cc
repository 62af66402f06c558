// SPDX-License-Identifier: Apache-2.0
//
// scheduler_bench [THREADS [STREAMS [ROWS]]]: how many rows per second the
// scheduler alone hands out, fills and delivers: rows of 16 bytes that cost
// nothing to compute, requested by streams of one job before the first of them
// may begin.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "fmt/core.h"
#include "worker/compute/buffer_pool.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {
namespace {

constexpr uint32_t kRowsPerRequest = 256;
constexpr uint64_t kSteps = 1000;

// Rows wait until the gate is open.
class OpenableWork final : public RowWork {
 public:
  const std::string& job_key() const override { return key_; }
  std::span<const size_t> field_bytes() const override { return bytes_; }
  uint64_t steps_per_epoch() const override { return kSteps; }
  absl::Status Compute(
      const RowOf& row, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    if (!open_.load(std::memory_order_acquire)) {
      MutexLock lock(&mu_);
      while (!open_) opened_.Wait(&mu_);
    }
    std::memcpy(outputs[0].data(), &row.sample, sizeof row.sample);
    return absl::OkStatus();
  }
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    opened_.NotifyAll();
  }

 private:
  const std::string key_ = "job";
  const std::vector<size_t> bytes_ = {16};
  mutable Mutex mu_;
  mutable CondVar opened_;
  std::atomic<bool> open_{false};
};

// Drops everything that it is given.
class DroppingSink final : public GroupSink {
 public:
  void OnGroup(FinishedGroup group) override { rows_ += group.rows.size(); }
  uint64_t rows() const { return rows_; }

 private:
  std::atomic<uint64_t> rows_{0};
};

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Measured {
  double rows_per_s = 0;
  double cpu_us_per_row = 0;
};

Measured MeasureScheduler(int threads, int streams, uint64_t rows) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(256 << 20, wake);
  SchedulerOptions options;
  options.threads = threads;
  options.group_bytes = size_t{kRowsPerRequest} * 16;
  options.max_rows_per_stream = rows;
  options.max_rows_total = rows * static_cast<uint64_t>(streams);
  Scheduler scheduler(options, &pool, wake, Clock::Real());
  const auto work = std::make_shared<OpenableWork>();
  const auto sink = std::make_shared<DroppingSink>();
  uint64_t asked = 0;
  for (int i = 0; i < streams; ++i) {
    const auto stream = scheduler.OpenStream(work, sink);
    if (!stream.ok()) {
      fmt::print(stderr, "scheduler_bench: {}\n", Message(stream.status()));
      std::exit(1);
    }
    for (uint64_t request = 0; request < rows / kRowsPerRequest; ++request) {
      RowRequest of{.request_id = request,
                    .epoch = request / kSteps,
                    .step = request % kSteps};
      for (uint32_t row = 0; row < kRowsPerRequest; ++row) {
        of.rows.push_back(row);
        of.samples.push_back(request * kRowsPerRequest + row);
      }
      asked += kRowsPerRequest;
      if (const absl::Status status = scheduler.Ask(*stream, std::move(of));
          !status.ok()) {
        fmt::print(stderr, "scheduler_bench: {}\n", Message(status));
        std::exit(1);
      }
    }
  }
  const double cpu = CpuSeconds();
  const auto began = std::chrono::steady_clock::now();
  work->Open();
  scheduler.WaitIdle(MonotonicTime::max());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
          .count();
  const double spent = CpuSeconds() - cpu;
  scheduler.Stop();
  if (sink->rows() != asked) {
    fmt::print(stderr, "scheduler_bench: {} rows came, want {}\n", sink->rows(),
               asked);
    std::exit(1);
  }
  return {.rows_per_s = static_cast<double>(asked) / seconds,
          .cpu_us_per_row = spent * 1e6 / static_cast<double>(asked)};
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 64;
  const int streams = argc > 2 ? std::atoi(argv[2]) : 64;
  const uint64_t rows = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 16384;
  if (threads < 1 || streams < 1 || rows < kRowsPerRequest) {
    fmt::print(stderr,
               "usage: scheduler_bench [THREADS [STREAMS [ROWS]]]: 1 or more "
               "of each, and {} rows\n",
               kRowsPerRequest);
    return 2;
  }
  for (int round = 0; round < 5; ++round) {
    const Measured measured = MeasureScheduler(threads, streams, rows);
    fmt::print(
        "scheduler threads={} streams={} rows={} rows_per_s={:.2f}M "
        "cpu_us_per_row={:.3f}\n",
        threads, streams, rows * static_cast<uint64_t>(streams),
        measured.rows_per_s / 1e6, measured.cpu_us_per_row);
  }
  return 0;
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) { return leat::worker::Main(argc, argv); }
