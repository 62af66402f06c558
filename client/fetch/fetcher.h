// SPDX-License-Identifier: Apache-2.0
//
// Fetcher decides which worker is asked for which row, and when again. It has
// no I/O, no clock, no lock.
//
// It holds the window of steps and routes their rows: the EndpointTable chooses
// a worker for each row, Deliveries adds the row to a message to it, and Leases
// decides whether it is written in place. If that worker's stream ends, or it
// returns an error that is not the sample's, the row is requested from another
// worker. Late rows of the step that the consumer waits for are requested from
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
#include "client/fetch/in_flight.h"
#include "client/fetch/leases.h"
#include "client/fetch/worker_stream.h"
#include "core/clock.h"
#include "core/plan/job_shards.h"

namespace leat::client {

class Fetcher {
 public:
  Fetcher(const FetcherConfig& config, JobShards shards);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void SetTable(std::shared_ptr<const AssignmentTable> table);

  // The window: steps in order; the head is the next to be delivered.
  void AddStep(std::shared_ptr<Step> step, MonotonicTime now);
  size_t num_steps() const { return in_flight_.steps.size(); }
  // Returns the bytes of client-supplied samples of the steps.
  uint64_t supplied_bytes() const;
  const Step& head() const { return *in_flight_.steps.front(); }
  // REQUIRES: head().complete().
  std::shared_ptr<Step> PopHead(MonotonicTime now);
  // Returns how many steps could be delivered now.
  size_t num_ready() const;
  // Rows that are outstanding, and streams that are open.
  size_t open_rows() const;
  size_t num_streams() const;
  // The consumer begins and ends a wait. The wait is attributed to the workers
  // that owed rows of the head when it began, each by its share of the rows
  // that are outstanding; the last one gets all of the rest.
  void BeginWait(MonotonicTime now);
  void EndWait(MonotonicTime now);
  // Sets whether the consumer waits for the head: only then are rows late.
  void set_waiting(bool waiting) { waiting_ = waiting; }

  // Decides what the engine has to do now. If the first step's timeout has
  // passed, sets its error (head().error).
  Decisions Decide(MonotonicTime now);
  // Returns the decisions so far; the next Decide returns them, too.
  const Decisions& decided() const { return in_flight_.decided; }
  // Returns true once after an event that needs Decide.
  bool TakeDirty() { return std::exchange(in_flight_.dirty, false); }

  // A message could not be sent: the stream gets no more requests until Closed.
  void Break(WorkerStream& stream);
  // Reports the end of the stream. This is the last call for it.
  void Closed(WorkerStream& stream, const absl::Status& status,
              MonotonicTime now);
  void Looked(const std::string& address, const rpc::Hindrance& hindrance);
  void Uploaded(Step& step, const absl::Status& status);

  // The parts, for messages from workers.
  Deliveries& deliveries() { return deliveries_; }
  Leases& leases() { return leases_; }
  const Leases& leases() const { return leases_; }
  EndpointTable& table() { return table_; }
  const EndpointTable& table() const { return table_; }

  const FetchCounters& counters() const { return in_flight_.counters; }
  // Returns how the newest rows came: "grpc", "shm", "cuda", or several with
  // "+".
  std::string transport() const;

 private:
  // Attributes the time since its last call to the workers that owed rows then.
  void NoteWait(MonotonicTime now);
  // Both return whether rows wait because no worker is available.
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
  InFlight in_flight_;
  EndpointTable table_;
  Leases leases_;
  Deliveries deliveries_;
  HedgeBudget budget_;
  std::optional<uint64_t> warned_at_;  // rows that had arrived then
  bool waiting_ = false;
  MonotonicTime waiting_since_{};  // as known to Decide; zero: no wait
  bool noted_ = false;             // since then
  MonotonicTime head_since_{};
  // For the current wait: the head's epoch and step; its outstanding rows, each
  // with the worker asked first, as of the beginning; and the time up to which
  // the wait was attributed.
  std::pair<uint64_t, uint64_t> waited_for_;
  std::vector<std::pair<uint32_t, uint16_t>> owed_;
  bool unplanned_ = false;  // since the wait began there is no head
  MonotonicTime owed_since_{};
};

}  // namespace leat::client
