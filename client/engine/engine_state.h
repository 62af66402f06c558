// SPDX-License-Identifier: Apache-2.0
//
// EngineState: what the threads of one iterator share: its options, the Fetcher
// under a lock, whether the iterator has ended, and who is woken.
//
// One mutex; nothing is sent, copied, planned or allocated while it is held.
// Owned by the Engine and its Links.
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
        fetcher(options.fetch, options.shards) {}

  // The Engine's thread has something to do.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // After the Fetcher was told something: wakes who has to act.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The iterator has failed, unless it had before.
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Copies the rows until they are in their step's memory. Without the lock.
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

// `rows` that came by the request have been copied, if the step is traced.
void TraceReceive(const Step& step, uint64_t request_id, size_t rows,
                  MonotonicTime begin, MonotonicTime end);

}  // namespace leat::client
