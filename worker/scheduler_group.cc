// SPDX-License-Identifier: Apache-2.0
//
// A group's life: planned, opened in a buffer or in lent memory, computed
// (scheduler_compute.cc), finished by its stage if it has one
// (scheduler_stage.cc), delivered.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/stages.h"
#include "core/status.h"
#include "worker/scheduler_state.h"

namespace leat::worker {
namespace {

void UseMemory(Group& group, const PendingAsk& ask) {
  group.placed = true;
  group.memory = ask.ask.memory;
  const auto first = ask.ask.places.begin() + static_cast<ptrdiff_t>(ask.next);
  group.places.assign(first, first + static_cast<ptrdiff_t>(group.rows.size()));
  group.outputs.base = group.memory->base();
  group.outputs.device = group.memory->device();
  group.outputs.offsets = group.memory->field_offsets();
  group.outputs.places = group.places;
}

size_t BufferBytes(const StreamState& stream, const Group& group) {
  return group.rows.size() * stream.row_bytes;
}

}  // namespace

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

GroupMap::iterator Scheduler::State::Plan(StreamState& stream, size_t most) {
  const auto it = stream.asks.begin();
  PendingAsk& ask = it->second;
  const size_t rows = std::min(most, ask.ask.rows.size() - ask.next);
  auto group = std::make_shared<Group>(clock, counters, wake);
  group->credit = std::make_shared<const Credit>(stream.held);
  group->sink = stream.sink;
  group->stream = stream.id;
  group->ask_id = ask.ask.ask_id;
  group->group_id = stream.next_group_id++;
  group->epoch = ask.ask.epoch;
  group->step = ask.ask.step;
  group->position = it->first;
  group->asked_at = ask.asked_at;
  group->lease = ask.ask.lease;
  group->work = stream.work;
  group->shared = stream.shared;
  const auto first = static_cast<ptrdiff_t>(ask.next);
  const auto last = first + static_cast<ptrdiff_t>(rows);
  group->rows.assign(ask.ask.rows.begin() + first, ask.ask.rows.begin() + last);
  group->samples.assign(ask.ask.samples.begin() + first,
                        ask.ask.samples.begin() + last);
  if (const auto& brought = ask.ask.brought; !brought.empty())
    group->brought.assign(brought.begin() + first, brought.begin() + last);
  group->absent = ask.ask.absent;
  group->outputs.rows = rows;
  group->outputs.field_bytes = stream.work->field_bytes();
  if (ask.ask.memory != nullptr) UseMemory(*group, ask);
  if (ask.ask.trace != nullptr) [[unlikely]] {
    group->trace = ask.ask.trace;
    group->span = group->trace->RowsId(group->ask_id, group->group_id);
    group->planned_at = clock.Now();
  }
  if (stream.ahead) {
    group->reads = std::make_shared<GroupReads>();
    group->reads->trace = group->trace;
    group->reads->span = group->span;
    group->reads->account = stream.job->reads;
    group->reads->records.resize(rows);
    if (!group->placed)
      group->booked = BufferPool::ClassBytes(BufferBytes(stream, *group));
    stream.job->booked += group->booked;
    booked += group->booked;
  }
  ask.next += rows;
  const GroupPlace place(it->first, group->group_id);
  if (ask.next == ask.ask.rows.size()) stream.asks.erase(it);
  return stream.groups.emplace(place, std::move(group)).first;
}

void Scheduler::State::Reserve(StreamState& stream, Group& group) {
  if (group.placed || group.buffer.has_memory()) return;
  stream.job->booked -= group.booked;
  booked -= std::exchange(group.booked, 0);
  // There is room: MayPlan saw it, and what was booked since came after.
  group.buffer = *pool->Reserve(BufferBytes(stream, group));
}

bool Scheduler::State::OpenAtOnce(StreamState& stream,
                                  const std::shared_ptr<Group>& group,
                                  Groups* opens) {
  Reserve(stream, *group);
  opens->push_back(group);
  if (IsStaged(*group)) {
    stage_opening = true;
    Join(stream, opens);
  } else if (group->placed || group->buffer.has_memory()) {
    if (!group->placed) UseBuffer(*group);
    group->phase = Phase::kOpen;
    opens->clear();
    return true;
  } else {
    stream.opening = true;
  }
  for (const auto& each : *opens) each->phase = Phase::kOpening;
  return false;
}

void Scheduler::State::Deliver(std::shared_ptr<Group> group) {
  // What is written to, of what, and by whom, ends here: stage, samples,
  // memory, lease. The last goes after the answer, so that the answer is the
  // first to say so.
  const std::shared_ptr<const void> lease = std::move(group->lease);
  const std::shared_ptr<const RowWork> work = std::move(group->work);
  const std::shared_ptr<GroupSink> sink = std::move(group->sink);
  group->stage.reset();
  group->brought.clear();
  group->memory.reset();
  group->outputs = {};
  group->sent = true;
  group->sent_at = group->clock.Now();
  ++group->counters->groups_unsent;
  const StageScope handing(Stage::kGroup);
  FinishedGroup result{.ask_id = group->ask_id,
                       .group_id = group->group_id,
                       .rows = group->rows,
                       .status = group->status,
                       .placed = group->placed,
                       .places = std::move(group->places),
                       .lease = lease.get(),
                       .payload = {},
                       .owner = nullptr};
  SharedCounters& counters = *group->counters;
  if (group->status.ok()) {
    counters.rows_total += group->rows.size();
    if (group->placed) counters.rows_placed_total += group->rows.size();
    if (!group->placed) result.payload = group->buffer.bytes();
    result.owner = std::move(group);
  } else {
    counters.row_errors_total += group->rows.size();
  }
  sink->OnGroup(std::move(result));
}

}  // namespace leat::worker
