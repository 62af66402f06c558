// SPDX-License-Identifier: Apache-2.0
//
// Figures: what workers and consumers did, of what they report.
//
// Reports count since a process began. Of two reports, a slot of the history
// (server/observe/history.h) or more apart, the differences make a sample:
// shares of the time between them. A process that began anew counts from zero,
// and is compared with its own reports only. What a job did in a while is the
// mean of its samples.
//
// A verdict judges by what was while the trainer waited. So of a consumer it
// takes what came after the first step of its session (a wait for that is the
// start of a job), and of the workers each slot by how long the slowest
// consumer waited in it: what they did before the job, or while the trainer
// compiled its step, says nothing of what it waits for.
//
//   NoteWorker("w0", {decode: 8 threads, busy 10 s}, 12:00:00)
//   NoteWorker("w0", {decode: 8 threads, busy 18 s}, 12:00:02) ─► decoding 0.5
//
// Thread-safe, with a lock of its own that no file, network or log is touched
// under. Reports are hostile: whatever they say, the shares are in [0, 1].
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
#include "server/observe/job_figures.h"
#include "server/observe/worker_slots.h"

namespace leat::server {

// What a consumer did in a slot of the history.
struct ConsumerMoment {
  int64_t slot = 0;
  double rows_per_s = 0;
  double waiting = 0;  // of its time
  // Of a step, to a tenth of their value.
  double wait_p50_ms = 0, wait_p95_ms = 0;
};

class Figures {
 public:
  explicit Figures(const History::Config& config) : history_(config) {}

  // A new session: what an earlier one of this name did does not count for it.
  void BeginWorker(std::string_view name);
  void BeginConsumer(std::string_view name);
  void NoteWorker(const std::string& name, const v1::WorkerStats& stats,
                  MonotonicTime now);
  void NoteConsumer(const std::string& name, const v1::ConsumerStats& stats,
                    MonotonicTime now);

  // What it did since then; nullopt: there are no samples.
  std::optional<ConsumerFigures> OfConsumer(const std::string& name,
                                            MonotonicTime since) const;
  // The same, and no earlier than the first step of its session; nullopt: that
  // has not come. It begins later if the consumer has stopped to wait, and
  // earlier (kLookBack) if its waits come again and are far apart.
  std::optional<ConsumerPast> PastOf(const std::string& name,
                                     MonotonicTime since) const;
  // Adds what it did since then in its session, from when it first did
  // something.
  void AddWorker(const std::string& name, MonotonicTime since,
                 WorkerSlots* to) const;
  // What limits the job of the consumer, of which enough is known, by what the
  // workers did in the slots in which it waited, for all jobs and for this one.
  // `before`: as FindBottleneck's.
  Bottleneck Judge(const std::string& job, const ConsumerPast& slowest,
                   const WorkerSlots& workers,
                   Limit before = Limit::kUnknown) const;
  JobFigures& jobs() const { return jobs_; }
  // The oldest first.
  void ForEachOfConsumer(
      const std::string& name, MonotonicTime since,
      const std::function<void(const ConsumerMoment&)>& visit) const;
  // What all workers and consumers did in each stage since then, five minutes
  // at most: `places` is how many there were on average, and totals are of that
  // time. `seen` becomes the time that was told of. Stages that nobody told of
  // are left out.
  std::vector<v1::StageStats> Stages(MonotonicTime since, Duration* seen) const;
  // How full the queues in front of stages were in each slot from `since` to
  // `now`, five minutes at most, of all who told it: the share of their room,
  // or the mean depth where there is no bound; negative: nobody told it. GROUP
  // is the groups' buffers. Stages of which nothing is known are left out.
  std::map<v1::Stage, std::vector<double>> Queues(MonotonicTime since,
                                                  MonotonicTime now) const;
  size_t bytes() const;

 private:
  using Reported = google::protobuf::RepeatedPtrField<v1::StageStats>;
  static constexpr size_t kStages = v1::Stage_ARRAYSIZE;
  static constexpr size_t kStageSlots = 150;
  // Of one stage: counts, and what they are shares of.
  struct StageCounts {
    uint64_t items = 0, busy_ns = 0, input_ns = 0, output_ns = 0, idle_ns = 0;
    double place_ns = 0;
  };
  // Of the queue in front of a stage: sums over reports.
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

  // Counts of a report, since its process began.
  struct Totals {
    MonotonicTime at{};
    uint64_t rows = 0;
    std::array<uint64_t, History::kShares> ns{};
    AllStages stages{};
    absl::flat_hash_map<std::string, uint64_t> waited_for;  // by worker
    // What counts for verdicts begins with the report of `begin`.
    std::optional<MonotonicTime> begin{};
    uint64_t steps_at_begin = 0, window = 0;

    uint64_t steps() const { return stages.at(v1::STAGE_TRAIN).items; }
  };

  // The report to compare with; nullopt: it is too early, or the first one. The
  // new one takes its place unless it is too early. `begins`: it counts from
  // now on, if its session has not begun before.
  std::optional<Totals> Before(const std::string& series, Totals now,
                               bool begins) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<ConsumerPast> ConsumerSince(const std::string& name,
                                            MonotonicTime since) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // As PastOf, of a session that began at `begin`.
  ConsumerPast JudgedPast(const std::string& name, MonotonicTime since,
                          MonotonicTime begin) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static AllStages CountsOf(const Reported& stages);
  // Adds what has grown between two reports. Returns the slot.
  StageSlot& AddStages(const Totals& before, const Totals& now,
                       const Reported& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetBefore(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable JobFigures jobs_;
  mutable Mutex mu_;
  History history_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Totals> last_ ABSL_GUARDED_BY(mu_);
  // By slot, modulo its size.
  std::vector<StageSlot> stages_ ABSL_GUARDED_BY(mu_) =
      std::vector<StageSlot>(kStageSlots);
  MonotonicTime swept_at_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::server
