// SPDX-License-Identifier: Apache-2.0
//
// Fetcher: decides which worker is asked for which row, and when again. No I/O,
// no clock, no lock.
//
// It holds the window of steps and goes through its rows: each goes to the
// worker that the EndpointTable chooses, in a message that Deliveries puts
// together, in place where Leases allows it. If that worker's stream ends, or
// it answers an error that is not the sample's, the row goes to another one.
// Rows of the step that the consumer waits for, and that are late, are asked of
// a second worker too (hedging), within a budget. The first answer wins.
//
// Thread-compatible: the owner locks. Time: callers pass `now`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/batch/step.h"
#include "client/fetch/assignment_table.h"
#include "client/fetch/decisions.h"
#include "client/fetch/deliveries.h"
#include "client/fetch/endpoint_table.h"
#include "client/fetch/fetcher_config.h"
#include "client/fetch/hedge_budget.h"
#include "client/fetch/leases.h"
#include "client/fetch/window.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"
#include "core/plan/shard_table.h"

namespace leat::client {

class Fetcher {
 public:
  Fetcher(const FetcherConfig& config, const ShardTable& shards);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void SetTable(std::shared_ptr<const AssignmentTable> table);

  // The window: steps in order; the head is the next to be handed out.
  void AddStep(std::shared_ptr<Step> step, MonotonicTime now);
  size_t num_steps() const { return window_.steps.size(); }
  // The bytes of the samples that have been supplied for the steps.
  uint64_t supplied_bytes() const;
  const Step& head() const { return *window_.steps.front(); }
  // REQUIRES: head().complete().
  std::shared_ptr<Step> PopHead(MonotonicTime now);
  // Steps that could be handed out now.
  size_t num_ready() const;
  // Rows that have been asked and have not come, and streams that are open.
  size_t open_rows() const;
  size_t num_streams() const;
  // The consumer begins to wait, and ends it. Workers that owed rows of the
  // head as it began cause the wait, each by its share of those that have not
  // come: the last one of them all that is left of it.
  void BeginWait(MonotonicTime now);
  void EndWait(MonotonicTime now);
  // Whether the consumer waits for the head: only then are rows late.
  void set_waiting(bool waiting) { waiting_ = waiting; }

  // Decides what the engine has to do now. If the first step's time has passed,
  // its error is set (head().error).
  Decisions Decide(MonotonicTime now);
  // Returns what was decided since then; the next Decide returns it, too.
  const Decisions& decided() const { return window_.decided; }
  // True once after something happened that needs Decide.
  bool TakeDirty() { return std::exchange(window_.dirty, false); }

  // A message could not be sent: nothing more is asked until Closed.
  void Break(WorkerStream& stream);
  // The stream has ended. This is the last call for it.
  void Closed(WorkerStream& stream, const absl::Status& status,
              MonotonicTime now);
  void Looked(const std::string& address, const rpc::Hindrance& hindrance);
  void Uploaded(Step& step, const absl::Status& status);

  // The parts, for what comes from workers.
  Deliveries& deliveries() { return deliveries_; }
  Leases& leases() { return leases_; }
  const Leases& leases() const { return leases_; }
  EndpointTable& table() { return table_; }
  const EndpointTable& table() const { return table_; }

  const FetchCounters& counters() const { return window_.counters; }
  // How the newest rows came: "grpc", "shm", "cuda", or several with "+".
  std::string transport() const;

 private:
  // Puts the time since it was called last down to the workers that owed rows
  // then.
  void NoteWait(MonotonicTime now);
  // Both return whether rows wait because nobody can be asked.
  bool RouteAll(MonotonicTime now);
  bool RouteStep(const std::shared_ptr<Step>& step, MonotonicTime now);
  void AskRow(const std::shared_ptr<Step>& step, uint32_t index,
              uint16_t worker, MonotonicTime now);
  void Unhedge(Row& row);
  void Warn(std::string_view why);
  void CheckRefusal();
  void HedgeHead(MonotonicTime now);
  void CheckTimeout(MonotonicTime now);
  void NoteLate(MonotonicTime now);
  void BeginUploads();
  void DueAt(MonotonicTime time);
  absl::Status TimeoutError() const;

  const FetcherConfig config_;
  Window window_;
  EndpointTable table_;
  Leases leases_;
  Deliveries deliveries_;
  HedgeBudget budget_;
  std::optional<uint64_t> warned_at_;  // rows that had come then
  bool waiting_ = false;
  MonotonicTime waiting_since_{};  // as Decide knows it; zero: nobody waits
  bool noted_ = false;             // since then
  MonotonicTime head_since_{};
  // Of the wait under way: the head's epoch and step, those of its rows that
  // have not come with the worker that was asked first as it began, and until
  // when it has been put down.
  std::pair<uint64_t, uint64_t> waited_for_;
  std::vector<std::pair<uint32_t, uint16_t>> owed_;
  MonotonicTime owed_since_{};
};

}  // namespace leat::client
