// SPDX-License-Identifier: Apache-2.0
#include "client/engine/engine_state.h"

#include "core/observe/tracing.h"

namespace leat::client {

void EngineState::Wake() {
  wake = true;
  wanted.NotifyOne();
}

void EngineState::Settle() {
  if (fetcher.TakeDirty()) Wake();
  if (!fetcher.leases().transport_error().ok() ||
      (fetcher.num_steps() > 0 &&
       (fetcher.head().ready() || !fetcher.head().error.ok())))
    ready.NotifyAll();
}

void EngineState::Fail(const absl::Status& status) {
  if (error.ok()) error = status;
  ready.NotifyAll();
}

void EngineState::Move(MovePiece& piece) {
  for (bool moved = false; !moved;) {
    const MonotonicTime begin = Clock::Real().Now();
    piece.step->CopyRows(*piece.from, *piece.to, piece.indices, piece.mine);
    const MonotonicTime end = Clock::Real().Now();
    if (piece.request_id != 0)
      TraceReceive(*piece.step, piece.request_id, piece.indices.size(), begin,
                   end);
    MutexLock lock(&mu);
    receiving += end - begin;
    moved = fetcher.deliveries().FinishMove(piece, Clock::Real().Now());
    Settle();
  }
}

void TraceReceive(const Step& step, uint64_t request_id, size_t rows,
                  MonotonicTime begin, MonotonicTime end) {
  if (!step.trace) return;
  const TracedStep& trace = *step.trace;
  trace.Record({.of = nullptr,
                .kind = SpanKind::kReceive,
                .thread = ThreadNumber(),
                .parent = trace.RequestId(request_id),
                .begin_ns = trace.Unix(begin),
                .end_ns = trace.Unix(end),
                .rows = rows});
}

}  // namespace leat::client
