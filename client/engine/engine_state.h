// SPDX-License-Identifier: Apache-2.0
//
// EngineState is shared by the threads of one iterator: its options, the
// Fetcher under a lock, whether the iterator has ended, and whom to wake.
//
// It has one mutex; nothing is sent, copied, planned or allocated while it is
// held. Owned by the Engine and its Links.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "client/engine/engine_options.h"
#include "client/fetch/fetcher.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::client {

struct EngineState {
  explicit EngineState(EngineOptions its_options)
      : options(std::move(its_options)),
        fetcher(options.fetch, options.Shards()) {}

  // Wakes the Engine's thread, which has work.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Call after a report to the Fetcher: wakes the threads that have to act.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Fails the iterator, unless it had failed before.
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Copies rows until all are in their step's memory. Runs without the lock.
  void Move(MovePiece& piece);

  const EngineOptions options;

  mutable Mutex mu;
  CondVar ready;   // for Engine::Next
  CondVar wanted;  // for the Engine's thread
  Fetcher fetcher ABSL_GUARDED_BY(mu);
  absl::Status error ABSL_GUARDED_BY(mu);  // final
  bool wake ABSL_GUARDED_BY(mu) = false;
  bool cancelled ABSL_GUARDED_BY(mu) = false;
  Duration receiving ABSL_GUARDED_BY(mu){0};  // copying rows into place
};

// Traces that `rows` of the request were copied, if the step is traced.
void TraceReceive(const Step& step, uint64_t request_id, size_t rows,
                  MonotonicTime begin, MonotonicTime end);

}  // namespace leat::client
