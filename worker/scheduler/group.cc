// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/group.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace leat::worker {

void UseBuffer(Group& group) {
  uint64_t offset = 0;
  group.offsets.clear();
  for (const size_t bytes : group.outputs.field_bytes) {
    group.offsets.push_back(offset);
    offset += group.rows.size() * bytes;
  }
  group.outputs.base = group.room.buffer.bytes().data();
  group.outputs.offsets = group.offsets;
}

void UseMemory(Group& group) {
  group.outputs.base = group.memory->base();
  group.outputs.device = group.memory->device();
  group.outputs.offsets = group.memory->field_offsets();
  group.outputs.slots = group.slots;
}

SentGroup::SentGroup(Group* group, size_t rows)
    : clock_(group->clock),
      counters_(group->counters),
      sending_(std::move(group->sending)),
      room_(std::move(group->room)),
      rows_(rows),
      failed_(!group->status.ok()),
      asked_at_(group->asked_at),
      planned_at_(group->planned_at),
      sent_at_(group->clock.Now()),
      trace_(std::move(group->trace)),
      request_id_(group->request_id),
      span_(group->span) {
  ++counters_->groups_unsent;
  ++sending_->groups_unsent;
}

uint32_t SentGroup::took_us() const {
  return static_cast<uint32_t>(
      std::clamp<int64_t>((sent_at_ - asked_at_) / std::chrono::microseconds(1),
                          1, std::numeric_limits<uint32_t>::max()));
}

SentGroup::~SentGroup() {
  const MonotonicTime now = clock_.Now();
  counters_->latency.Add(now - asked_at_, rows_);
  const auto sending_ns = static_cast<uint64_t>(
      std::max(Duration(now - sent_at_), Duration(0)).count());
  counters_->sending_ns += sending_ns;
  ++counters_->groups_sent;
  --counters_->groups_unsent;
  sending_->ns += sending_ns;
  --sending_->groups_unsent;
  if (trace_ != nullptr) [[unlikely]]
    RecordSpans(now);
}

void SentGroup::RecordSpans(MonotonicTime now) const {
  const auto record = [&](SpanKind kind, uint64_t id, uint64_t parent,
                          MonotonicTime begin, MonotonicTime end) {
    trace_->Record({.of = nullptr,
                    .kind = kind,
                    .failed = kind == SpanKind::kRows && failed_,
                    .id = id,
                    .parent = parent,
                    .begin_ns = trace_->Unix(begin),
                    .end_ns = trace_->Unix(end),
                    .rows = rows_});
  };
  record(SpanKind::kQueue, 0, span_, asked_at_, planned_at_);
  record(SpanKind::kSend, 0, span_, sent_at_, now);
  record(SpanKind::kRows, span_, trace_->RequestId(request_id_), asked_at_,
         now);
}

}  // namespace leat::worker
