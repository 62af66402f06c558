// SPDX-License-Identifier: Apache-2.0
//
// Links: an iterator's streams to workers, and its memory sockets: opens them,
// sends on them, takes what comes, and ends them. A stream's rows are copied
// into place by its own thread.
//
// A link keeps its handler alive until its end has been told, and the handler
// these Links. Stop waits for the ends of all. The last that a handler does is
// to give its reference back, so that who stops drops the last one, and with it
// all memory; never a thread of gRPC.
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

  // Sends what the Fetcher has decided, and opens links for that.
  void Send(const std::vector<StreamMessage>& messages);
  void EndIdle(const std::vector<std::shared_ptr<WorkerStream>>& streams);
  // Shares memory, and takes it back where it has been destroyed.
  void Share(std::vector<Offer> offers);
  void Sweep() { sharer_.Sweep(); }
  // Ends all.
  void Cancel();
  // Waits until all have ended, after Cancel. Not from a link's thread.
  // Idempotent.
  void Stop();
  // Nothing of a memory socket is told any more.
  void StopSharing() { sharer_.Stop(); }

 private:
  class Handler;

  std::shared_ptr<Link> LinkOf(const std::shared_ptr<WorkerStream>& stream);
  v1::OpenRows OpenFor(const AssignmentTable::Worker& worker) const;
  // Whether the worker may still write to what it was shared.
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
  // What handlers gave back, until it is stopped.
  std::shared_ptr<Links> self_ ABSL_GUARDED_BY(state_.mu);
};

}  // namespace leat::client
