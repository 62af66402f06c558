// SPDX-License-Identifier: Apache-2.0
//
// A group's life: planned, opened in a buffer or in lent memory, computed
// (compute.cc), finished by its stage if it has one
// (stage.cc), delivered.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/scheduler/state.h"

namespace leat::worker {
namespace {

size_t BufferBytes(const StreamState& stream, const Group& group) {
  return group.rows.size() * stream.row_bytes;
}

}  // namespace

StreamGroups::Iterator Scheduler::State::Plan(StreamState& stream,
                                              size_t most) {
  const StreamGroups::Iterator it =
      stream.groups.Plan(std::make_shared<Group>(clock, counters, wake), most);
  Group& group = *it->second;
  group.credit = std::make_shared<const Credit>(stream.held);
  group.sink = stream.sink;
  group.sending = stream.job->sending;
  group.stream = stream.id;
  group.work = stream.work;
  group.shared = stream.shared;
  group.outputs.rows = group.rows.size();
  group.outputs.field_bytes = stream.work->field_bytes();
  if (group.placed) UseMemory(group);
  if (group.trace != nullptr) [[unlikely]] {
    group.span = group.trace->RowsId(group.ask_id, group.group_id);
    group.planned_at = clock.Now();
  }
  if (stream.ahead) {
    group.reads =
        std::make_shared<ReadAhead::GroupReads>(&stream, group.rows.size());
    if (!group.placed)
      group.booked = BufferPool::ClassBytes(BufferBytes(stream, group));
    stream.job->booked += group.booked;
    booked += group.booked;
  }
  return it;
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
  ++group->sending->groups_unsent;
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
