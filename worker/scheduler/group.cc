// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/group.h"

namespace leat::worker {

void UseBuffer(Group& group) {
  uint64_t offset = 0;
  group.offsets.clear();
  for (const size_t bytes : group.outputs.field_bytes) {
    group.offsets.push_back(offset);
    offset += group.rows.size() * bytes;
  }
  group.outputs.base = group.buffer.bytes().data();
  group.outputs.offsets = group.offsets;
}

void UseMemory(Group& group) {
  group.outputs.base = group.memory->base();
  group.outputs.device = group.memory->device();
  group.outputs.offsets = group.memory->field_offsets();
  group.outputs.places = group.places;
}

void Group::RecordSpans(MonotonicTime now) const {
  const auto record = [&](SpanKind kind, uint64_t id, uint64_t parent,
                          MonotonicTime begin, MonotonicTime end) {
    trace->Record({.of = nullptr,
                   .kind = kind,
                   .failed = kind == SpanKind::kRows && !status.ok(),
                   .id = id,
                   .parent = parent,
                   .begin_ns = trace->Unix(begin),
                   .end_ns = trace->Unix(end),
                   .rows = rows.size()});
  };
  record(SpanKind::kQueue, 0, span, asked_at, planned_at);
  record(SpanKind::kSend, 0, span, sent_at, now);
  record(SpanKind::kRows, span, trace->AskId(ask_id), asked_at, now);
}

}  // namespace leat::worker
