// SPDX-License-Identifier: Apache-2.0
//
// Statistics of workers and consumers over time, from their reports.
//
// Reports count since a process began. The differences between two reports, a
// slot of the history (server/observe/history.h) or more apart, make a sample:
// shares of the time between them. A restarted process counts from zero, and is
// compared with its own reports only. A job's statistics of a period are the
// mean of its samples.
//
// A verdict considers the time in which the trainer waited. For a consumer it
// starts after the first step of its session (a wait for that is the start of a
// job). For workers each slot is weighted by how long the slowest consumer
// waited in it: what they did before the job, or while the trainer compiled its
// step, does not explain the waits.
//
//   NoteWorker("w0", {decode: 8 threads, busy 10 s}, 12:00:00)
//   NoteWorker("w0", {decode: 8 threads, busy 18 s}, 12:00:02) ─► decoding 0.5
//
// Thread-safe, with a lock of its own; no file, network or log is accessed
// under it. Reports are untrusted: whatever they say, the shares are in [0, 1].
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "core/observe/bottleneck.h"
#include "leat/v1/types.pb.h"
#include "server/observe/consumer_past.h"
#include "server/observe/history.h"
#include "server/observe/job_statistics.h"
#include "server/observe/worker_slots.h"

namespace leat::server {

// A ConsumerMoment: one slot of the history of a consumer.
struct ConsumerMoment {
  int64_t slot = 0;
  double rows_per_s = 0;
  double waiting = 0;  // share of its time
  // Per step, with a precision of a tenth of the value.
  double wait_p50_ms = 0, wait_p95_ms = 0;
};

class Statistics {
 public:
  explicit Statistics(const History::Config& config) : history_(config) {}

  // Begins a session: statistics of an earlier session of this name do not
  // count for it.
  void BeginWorker(std::string_view name);
  void BeginConsumer(std::string_view name);
  void NoteWorker(const std::string& name, const v1::WorkerStats& stats,
                  MonotonicTime now);
  void NoteConsumer(const std::string& name, const v1::ConsumerStats& stats,
                    MonotonicTime now);

  // Returns the statistics since then; nullopt: there are no samples.
  std::optional<ConsumerStatistics> OfConsumer(const std::string& name,
                                               MonotonicTime since) const;
  // The same, but no earlier than the first step of its session; nullopt: there
  // was none yet. It begins later if the consumer has stopped waiting, and
  // earlier (kLookBack) if its waits recur and are far apart.
  std::optional<ConsumerPast> PastOf(const std::string& name,
                                     MonotonicTime since) const;
  // Adds what the worker did since then in its session, from its first work on.
  void AddWorker(const std::string& name, MonotonicTime since,
                 WorkerSlots* to) const;
  struct JudgedJob {
    std::string name;
    Limit before = Limit::kUnknown;         // as in FindBottleneck
    JobStatistics::NameSource name_source;  // as in JobStatistics::Mean
  };
  // Returns what limits the job of the consumer, which has `enough`, from what
  // the workers did in the slots in which it waited, for all jobs and for this
  // one.
  Bottleneck Judge(const JudgedJob& job, const ConsumerPast& slowest,
                   const WorkerSlots& workers) const;
  JobStatistics& jobs() const { return jobs_; }
  // Visits the oldest moment first.
  void ForEachOfConsumer(
      const std::string& name, MonotonicTime since,
      const std::function<void(const ConsumerMoment&)>& visit) const;
  // Returns what all workers and consumers did in each stage since then, at
  // most five minutes: `places` is the average number of places, and totals are
  // of that time. `seen` becomes the time that reports cover. Stages without a
  // report are left out.
  std::vector<v1::StageStats> Stages(MonotonicTime since, Duration* seen) const;
  // Returns how full the queue before each stage was in each slot from `since`
  // to `now`, at most five minutes, over all reporting processes: the used
  // share of the queue, or the mean depth if it is unbounded; negative: no
  // report. GROUP means the groups' buffers. Stages without any report are left
  // out.
  std::map<v1::Stage, std::vector<double>> Queues(MonotonicTime since,
                                                  MonotonicTime now) const;
  size_t bytes() const;

 private:
  using Reported = google::protobuf::RepeatedPtrField<v1::StageStats>;
  static constexpr size_t kStages = v1::Stage_ARRAYSIZE;
  static constexpr size_t kStageSlots = 150;
  // Counts of one stage, and the time that they are shares of.
  struct StageCounts {
    uint64_t items = 0, busy_ns = 0, input_ns = 0, output_ns = 0, idle_ns = 0;
    double place_ns = 0;
  };
  // The queue before a stage: sums over reports.
  struct QueueCounts {
    double depth = 0, room = 0, reports = 0;
    void Add(uint64_t queued, uint64_t capacity);
  };
  using AllStages = std::array<StageCounts, kStages>;
  struct StageSlot {
    int64_t slot = -1;
    AllStages stages{};
    std::array<QueueCounts, kStages> queues{};
  };

  // A consumer's waits for a worker, and the times of its answers.
  struct OfWorker {
    uint64_t waited = 0, answers = 0, queued = 0;
  };

  // Counts of a report, since its process began.
  struct Totals {
    MonotonicTime at{};
    uint64_t rows = 0;
    uint64_t requests = 0, retries = 0;  // to remote storage
    std::array<uint64_t, History::kShares> ns{};
    AllStages stages{};
    absl::flat_hash_map<std::string, OfWorker> of_worker;  // of a consumer
    uint64_t answers = 0, queued = 0;                      // of all workers
    uint64_t for_source = 0;
    double streams = 0;
    // Counts for verdicts start with the report at `begin`.
    std::optional<MonotonicTime> begin{};
    uint64_t steps_at_begin = 0, window = 0;

    uint64_t steps() const { return stages.at(v1::STAGE_TRAIN).items; }
  };

  // Returns the report to compare with; nullopt: it is too early, or the first
  // one. `now` replaces it unless it is too early. `begins`: verdicts count
  // from now on, if its session has not begun before.
  std::optional<Totals> Before(const std::string& series, Totals now,
                               bool begins) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<ConsumerPast> ConsumerSince(const std::string& name,
                                            MonotonicTime since) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // As PastOf, for a session that began at `begin`.
  ConsumerPast JudgedPast(const std::string& name, MonotonicTime since,
                          MonotonicTime begin) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static AllStages CountsOf(const Reported& stages);
  // Sets the shares that say which worker was waited for, and where answers
  // were queued.
  void SetWaits(const Totals& before, const Totals& now,
                History::Sample* sample) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the increase between two reports. Returns the slot.
  StageSlot& AddStages(const Totals& before, const Totals& now,
                       const Reported& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetBefore(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable JobStatistics jobs_;
  mutable Mutex mu_;
  History history_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Totals> last_ ABSL_GUARDED_BY(mu_);
  // By slot modulo the vector's size.
  std::vector<StageSlot> stages_ ABSL_GUARDED_BY(mu_) =
      std::vector<StageSlot>(kStageSlots);
  MonotonicTime swept_at_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::server
