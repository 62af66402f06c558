// SPDX-License-Identifier: Apache-2.0
//
// A group's life: opened in a buffer or in lent memory, computed, finished by
// its stage if it has one, delivered.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/scheduler_state.h"

namespace leat::worker {
namespace {

// Where a stage that finishes a group, and the call that made it do so, meet:
// the group is delivered by whichever of them ends last, so that a stage is
// never destroyed within its own Finish.
class StageEnd {
 public:
  explicit StageEnd(std::function<void(absl::Status)> last)
      : last_(std::move(last)) {}
  void OnDone(absl::Status status) {
    status_ = std::move(status);
    Leave();
  }
  void Leave() {
    if (left_.fetch_sub(1) == 1) std::exchange(last_, {})(std::move(status_));
  }

 private:
  std::function<void(absl::Status)> last_;
  absl::Status status_;
  std::atomic<int> left_{2};
};

// The rows of a group in a buffer of their own: field after field.
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

bool IsStaged(const Group& group) {
  return group.work->staged(group.outputs.device >= 0);
}

}  // namespace

GroupMap::iterator Scheduler::State::Plan(StreamState& stream) {
  const auto it = stream.asks.begin();
  PendingAsk& ask = it->second;
  const size_t rows =
      std::min(stream.rows_per_group, ask.ask.rows.size() - ask.next);
  stream.held->fetch_add(1);
  auto group = std::make_shared<Group>(clock, counters, wake, stream.held);
  group->stream = stream.id;
  group->ask_id = ask.ask.ask_id;
  group->group_id = stream.next_group_id++;
  group->epoch = ask.ask.epoch;
  group->step = ask.ask.step;
  group->position = it->first;
  group->asked_at = ask.asked_at;
  group->lease = ask.ask.lease;
  group->work = stream.work;
  const auto first = static_cast<ptrdiff_t>(ask.next);
  const auto last = first + static_cast<ptrdiff_t>(rows);
  group->rows.assign(ask.ask.rows.begin() + first, ask.ask.rows.begin() + last);
  group->samples.assign(ask.ask.samples.begin() + first,
                        ask.ask.samples.begin() + last);
  if (const auto& brought = ask.ask.brought; !brought.empty())
    group->brought.assign(brought.begin() + first, brought.begin() + last);
  group->outputs.rows = rows;
  group->outputs.field_bytes = stream.work->field_bytes();
  if (ask.ask.memory != nullptr) UseMemory(*group, ask);
  if (stream.ahead) {
    group->reads = std::make_shared<GroupReads>();
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

bool Scheduler::State::OpenAtOnce(StreamState& stream, Group& group) {
  if (!group.placed && !group.buffer.has_memory()) {
    stream.job->booked -= group.booked;
    booked -= std::exchange(group.booked, 0);
    // There is room: MayPlan saw it, and what was booked since came after.
    group.buffer = *pool->Reserve(BufferBytes(stream, group));
  }
  if (!IsStaged(group) && (group.placed || group.buffer.has_memory())) {
    if (!group.placed) UseBuffer(group);
    group.phase = Phase::kOpen;
    return true;
  }
  group.phase = Phase::kOpening;
  stream.opening = true;
  stage_opening = stage_opening || IsStaged(group);
  return false;
}

void Scheduler::State::Open(State& state, Task task) {
  Group& group = *task.group;
  absl::Status status;
  if (!group.placed) {
    status = group.buffer.Allocate();
    if (status.ok()) UseBuffer(group);
  }
  if (status.ok() && IsStaged(group))
    group.stage = group.work->BeginGroup(group.outputs);
  bool failed = false;
  {
    MutexLock lock(&state.mu);
    failed = !state.EndOpening(group, status);
  }
  if (failed) Deliver(std::move(task.group), *task.sink);
  task = {};
  MutexLock lock(&state.mu);
  --state.rows_in_work;
  state.progress.NotifyAll();
}

bool Scheduler::State::EndOpening(Group& group, const absl::Status& status) {
  if (IsStaged(group)) stage_opening = false;
  const auto found = streams.find(group.stream);
  if (found == streams.end()) return true;
  StreamState& stream = *found->second;
  stream.opening = false;
  if (group.dropped) return true;
  if (status.ok()) {
    group.phase = IsStaged(group) && group.stage == nullptr ? Phase::kPlanned
                                                            : Phase::kOpen;
    return true;
  }
  group.status = Annotate(status, fmt::format("ask {} of {} rows", group.ask_id,
                                              group.rows.size()));
  Drop(stream, group);
  Leave(stream, stream.groups.find({group.position, group.group_id}));
  return false;
}

absl::Status Scheduler::State::Compute(const Task& task, ThreadState* state) {
  const Group& group = *task.group;
  const RowOf row{
      .epoch = group.epoch,
      .step = group.step,
      .row = group.rows[task.index],
      .sample = group.samples[task.index],
      .brought = group.brought.empty() ? nullptr : &group.brought[task.index],
      .records = group.reads == nullptr ? nullptr : &task.records};
  if (group.stage != nullptr)
    return group.stage->Prepare(task.index, row, state);
  std::vector<std::span<std::byte>> outputs;
  outputs.reserve(group.outputs.field_bytes.size());
  for (size_t field = 0; field < group.outputs.field_bytes.size(); ++field)
    outputs.emplace_back(group.outputs.At(field, task.index),
                         group.outputs.field_bytes[field]);
  return group.work->Compute(row, state, outputs);
}

void Scheduler::State::Deliver(std::shared_ptr<Group> group, GroupSink& sink) {
  // What is written to, of what, and by whom, ends here: stage, samples,
  // memory, lease. The last goes after the answer, so that the answer is the
  // first to say so.
  const std::shared_ptr<const void> lease = std::move(group->lease);
  const std::shared_ptr<const RowWork> work = std::move(group->work);
  group->stage.reset();
  group->brought.clear();
  group->memory.reset();
  group->outputs = {};
  group->sent = true;
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
  sink.OnGroup(std::move(result));
}

void Scheduler::State::Finish(std::shared_ptr<State> state, Task task) {
  GroupStage* const stage = task.group->stage.get();
  const auto end = std::make_shared<StageEnd>(
      [state = std::move(state), group = std::move(task.group),
       sink = std::move(task.sink)](absl::Status status) mutable {
        group->status = std::move(status);
        Deliver(std::move(group), *sink);
        MutexLock lock(&state->mu);
        --state->stages_in_work;
        state->progress.NotifyAll();
      });
  stage->Finish([end](absl::Status status) { end->OnDone(std::move(status)); });
  end->Leave();
}

}  // namespace leat::worker
