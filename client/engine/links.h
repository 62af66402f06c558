// SPDX-License-Identifier: Apache-2.0
//
// Links: an iterator's streams to workers, and its memory sockets. It opens
// them, sends on them, receives, and ends them. A stream's own thread copies
// its rows into place.
//
// A link keeps its handler alive until its end was reported, and the handler
// these Links. Stop waits until all have ended. A handler finally gives its
// reference back to these Links, so that the thread that stops drops the last
// reference, and with it all memory, and never a thread of gRPC.
//
//   a link           its handler                          Stop
//     OnRows … ────► copies, and tells the Fetcher
//     OnClosed ────► Fetcher::Closed
//                    Detach ──── its reference ─────────► drops it
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/engine/engine_state.h"
#include "client/engine/link.h"
#include "client/engine/memory_sharer.h"
#include "client/fetch/decisions.h"
#include "core/mutex.h"

namespace leat::client {

class Links : public std::enable_shared_from_this<Links> {
 public:
  explicit Links(std::shared_ptr<EngineState> state);

  // Sends the Fetcher's decisions, and opens links as needed.
  void Send(const std::vector<StreamMessage>& messages);
  void EndIdle(const std::vector<std::shared_ptr<WorkerStream>>& streams);
  // Shares memory, and takes back memory that was destroyed.
  void Share(std::vector<Offer> offers);
  void Sweep() { sharer_.Sweep(); }
  // Ends all streams.
  void Cancel();
  // Waits until all have ended, after Cancel. Must not be called from a link's
  // thread. Idempotent.
  void Stop();
  // Ends all reports from memory sockets.
  void StopSharing() { sharer_.Stop(); }

 private:
  class Handler;

  std::shared_ptr<Link> LinkOf(const std::shared_ptr<WorkerStream>& stream);
  v1::OpenRows OpenFor(const AssignmentTable::Worker& worker) const;
  // Returns whether the worker may still write to shared memory.
  bool EndStream(WorkerStream& stream, const absl::Status& status);
  void Detach(std::shared_ptr<Links> self);
  MemorySharer::Events SharerEvents();
  void OnSharingFailed(WorkerStream& stream, const absl::Status& status);
  void OnSharingClosed(WorkerStream& stream);

  const std::shared_ptr<EngineState> shared_;
  EngineState& state_;
  MemorySharer sharer_;
  CondVar closed_;
  size_t open_links_ ABSL_GUARDED_BY(state_.mu) = 0;
  bool stopped_ ABSL_GUARDED_BY(state_.mu) = false;
  // Holds the reference that handlers gave back, until Stop.
  std::shared_ptr<Links> self_ ABSL_GUARDED_BY(state_.mu);
};

}  // namespace leat::client
