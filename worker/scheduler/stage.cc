// SPDX-License-Identifier: Apache-2.0
//
// A stage's life. A device is worth its while with many rows, and asks may have
// few: a stage takes what waits at the moment of it opening, of all streams of
// the job, in the order of steps, until it is full. Nothing waits for more to
// come. Each ask's rows stay a group of their own, with its buffer or lent
// memory, its turn between the streams, its answer and its error: the stage
// only knows where each row goes.
//
//   streams    a: ask 1 (2 rows)   b: ask 1 (1 row)    a: ask 2 (5 rows) …
//   groups     a1: rows 0 1        b1: row 0           a2: rows 0 1 2 3 4
//   stage      0 1                 2                   3 4 5 6 7
//
// When no row is left to prepare the stage finishes those that are wanted.
#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/scheduler/state.h"

namespace leat::worker {
namespace {

// Where a stage that finishes its rows, and the call that made it do so, meet:
// the groups are delivered by whichever of them ends last, so that a stage is
// never destroyed within its own Finish.
class StageEnd {
 public:
  explicit StageEnd(GroupStage::Done last) : last_(std::move(last)) {}
  void OnDone(std::vector<absl::Status> rows) {
    rows_ = std::move(rows);
    Leave();
  }
  void Leave() {
    if (left_.fetch_sub(1) == 1) std::exchange(last_, {})(std::move(rows_));
  }

 private:
  GroupStage::Done last_;
  std::vector<absl::Status> rows_;
  std::atomic<int> left_{2};
};

// A stage for these groups, not begun.
std::shared_ptr<SharedStage> Share(
    const std::vector<std::shared_ptr<Group>>& groups) {
  auto shared = std::make_shared<SharedStage>();
  Group& first = *groups.front();
  shared->work = first.work;
  if (groups.size() == 1) {
    first.first = 0;
    shared->outputs = first.outputs;
    return shared;
  }
  const size_t fields = first.outputs.field_bytes.size();
  shared->offsets.reserve(groups.size() * fields);
  for (const std::shared_ptr<Group>& group : groups) {
    const GroupOutputs& outputs = group->outputs;
    const uint64_t* const offsets =
        shared->offsets.data() + shared->offsets.size();
    shared->offsets.insert(shared->offsets.end(), outputs.offsets.begin(),
                           outputs.offsets.end());
    group->first = shared->targets.size();
    for (size_t row = 0; row < outputs.rows; ++row)
      shared->targets.push_back(
          {outputs.base, offsets,
           outputs.places.empty() ? row : outputs.places[row]});
  }
  shared->outputs = {.rows = shared->targets.size(),
                     .device = first.outputs.device,
                     .field_bytes = first.outputs.field_bytes,
                     .targets = shared->targets};
  return shared;
}

absl::Status FirstError(const std::vector<absl::Status>& rows,
                        const Group& group) {
  for (size_t row = 0; row < group.rows.size() && !rows.empty(); ++row)
    if (!rows[group.first + row].ok()) return rows[group.first + row];
  return absl::OkStatus();
}

// A stage has finished the group's rows, since `begin`.
void RecordDevice(const Group& group, MonotonicTime begin) {
  group.trace->Record({.of = nullptr,
                       .kind = SpanKind::kDevice,
                       .failed = !group.status.ok(),
                       .parent = group.span,
                       .begin_ns = group.trace->Unix(begin),
                       .end_ns = group.trace->Unix(group.clock.Now()),
                       .rows = group.rows.size()});
}

}  // namespace

void Scheduler::State::Join(StreamState& stream, Groups* groups) {
  const std::shared_ptr<Group> first = groups->front();
  const int device = first->outputs.device;
  size_t room = stream.rows_per_group -
                std::min(stream.rows_per_group, first->rows.size());
  // Others would wait for its storage.
  if (room == 0 || !IsComplete(*first)) return;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const Credit>> credits;
  credits[stream.id] = first->credit;
  const auto add = [&](StreamState& of, const std::shared_ptr<Group>& group) {
    mu.AssertHeld();
    Reserve(of, *group);
    // All groups of a stream in a stage count as one.
    auto& credit = credits.try_emplace(of.id, group->credit).first->second;
    group->credit = credit;
    room -= group->rows.size();
    groups->push_back(group);
  };
  // Groups that storage, or a full device, has held up.
  std::vector<std::pair<StreamState*, std::shared_ptr<Group>>> planned;
  using Waiting = std::pair<Position, StreamState*>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  const auto wait = [&](StreamState& of) {
    mu.AssertHeld();
    const PendingAsk* const ask = of.groups.first_ask();
    if (!of.ahead && ask != nullptr && DeviceOf(ask->ask) == device)
      waiting.emplace(ask->position, &of);
  };
  for (const auto& [id, other] : stream.job->streams) {
    if (other->work != stream.work) continue;
    wait(*other);
    for (const auto& [place, group] : other->groups)
      if (group != first && group->phase == Phase::kPlanned &&
          group->outputs.device == device && IsComplete(*group))
        planned.emplace_back(other, group);
  }
  std::sort(planned.begin(), planned.end(), [](const auto& a, const auto& b) {
    return a.second->position < b.second->position;
  });
  for (const auto& [of, group] : planned)
    if (group->rows.size() <= room) add(*of, group);
  while (room > 0 && !waiting.empty()) {
    StreamState& of = *waiting.top().second;
    waiting.pop();
    if (!MayPlan(of, room, credits.contains(of.id))) continue;
    add(of, Plan(of, room)->second);
    wait(of);
  }
}

void Scheduler::State::Open(State& state, Groups groups) {
  const StageScope opening(Stage::kGroup);
  std::vector<absl::Status> statuses(groups.size());
  Groups ready, failed;
  for (size_t i = 0; i < groups.size(); ++i) {
    Group& group = *groups[i];
    if (!group.placed) statuses[i] = group.buffer.Allocate();
    if (!statuses[i].ok()) continue;
    if (!group.placed) UseBuffer(group);
    ready.push_back(groups[i]);
  }
  const bool staged = IsStaged(*groups.front());
  std::shared_ptr<SharedStage> shared;
  if (staged && !ready.empty()) {
    shared = Share(ready);
    shared->stage = shared->work->BeginGroup(shared->outputs);
  }
  {
    MutexLock lock(&state.mu);
    if (staged) state.stage_opening = false;
    for (size_t i = 0; i < groups.size(); ++i)
      if (!state.EndOpening(groups[i], statuses[i], shared))
        failed.push_back(groups[i]);
    if (shared != nullptr && shared->left > 0) state.stages.insert(shared);
  }
  for (std::shared_ptr<Group>& group : failed) Deliver(std::move(group));
  groups.clear();
  ready.clear();
  shared.reset();
  MutexLock lock(&state.mu);
  --state.tasks_in_work;
  state.NoteOwing();
  state.progress.NotifyAll();
}

bool Scheduler::State::EndOpening(const std::shared_ptr<Group>& group,
                                  const absl::Status& status,
                                  const std::shared_ptr<SharedStage>& shared) {
  const bool begun = shared != nullptr && shared->stage != nullptr;
  const auto found = streams.find(group->stream);
  if (found != streams.end() && !IsStaged(*group))
    found->second->opening = false;
  if (group->dropped) {
    for (size_t row = 0; begun && status.ok() && row < group->rows.size();
         ++row)
      shared->unwanted.push_back(group->first + row);
    return true;
  }
  StreamState& stream = *found->second;
  if (!status.ok()) {
    group->status = Annotate(
        status,
        fmt::format("ask {} of {} rows", group->ask_id, group->rows.size()));
    Drop(stream, *group);
    stream.groups.Remove(*group);
    Requeue(stream);
    return false;
  }
  if (!IsStaged(*group)) {
    group->phase = Phase::kOpen;
  } else if (!begun) {
    group->phase = Phase::kPlanned;
  } else {
    group->phase = Phase::kOpen;
    group->stage = shared;
    shared->groups.push_back(group);
    shared->left += group->rows.size();
  }
  return true;
}

void Scheduler::State::LeaveStage(Group& group, size_t rows) {
  if (group.stage == nullptr) return;
  SharedStage& shared = *group.stage;
  for (size_t row = 0; row < group.rows.size(); ++row)
    shared.unwanted.push_back(group.first + row);
  std::erase_if(shared.groups,
                [&](const auto& each) { return each.get() == &group; });
  shared.left -= rows;
  if (shared.left > 0) return;
  stages.erase(group.stage);
  if (shared.groups.empty()) return;  // it goes with the group
  to_finish.push_back(group.stage);
  wake->Notify();
}

void Scheduler::State::Finish(std::shared_ptr<State> state,
                              std::shared_ptr<SharedStage> shared) {
  GroupStage* const stage = shared->stage.get();
  for (const size_t row : shared->unwanted) stage->Forget(row);
  const MonotonicTime begin = state->clock.Now();
  const auto end = std::make_shared<StageEnd>(
      [begin, state = std::move(state), shared = std::move(shared)](
          const std::vector<absl::Status>& rows) mutable {
        shared->stage.reset();
        for (std::shared_ptr<Group>& group :
             std::exchange(shared->groups, {})) {
          group->status = FirstError(rows, *group);
          if (group->trace != nullptr) [[unlikely]]
            RecordDevice(*group, begin);
          Deliver(std::move(group));
        }
        shared.reset();
        MutexLock lock(&state->mu);
        --state->stages_in_work;
        state->NoteOwing();
        state->progress.NotifyAll();
      });
  stage->Finish(
      [end](std::vector<absl::Status> rows) { end->OnDone(std::move(rows)); });
  end->Leave();
}

}  // namespace leat::worker
