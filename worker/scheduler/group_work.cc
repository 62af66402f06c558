// SPDX-License-Identifier: Apache-2.0
//
// The steps of a group's life between its parts: opened, finished by its stage
// if it has one, delivered. Nothing waits for more rows to come: a stage takes
// the groups that wait at the moment it is opened (GroupOpening::Join).
#include <utility>
#include <vector>

#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/scheduler/state.h"

namespace leat::worker {

bool Scheduler::State::BeginOpening(StreamState& stream,
                                    const std::shared_ptr<Group>& group,
                                    Groups* opens) {
  opening.Reserve(stream, *group);
  opens->push_back(group);
  if (IsStaged(*group)) {
    stages.BeginOpening();
    opening.Join(stream, opens);
  } else if (group->room.placed || group->room.buffer.has_memory()) {
    if (!group->room.placed) UseBuffer(*group);
    group->phase = Phase::kOpen;
    opens->clear();
    return true;
  } else {
    stream.opening = true;
  }
  for (const auto& each : *opens) each->phase = Phase::kOpening;
  return false;
}

void Scheduler::State::Open(State& state, Groups groups) {
  const StageScope in_stage(Stage::kGroup);
  GroupOpening::Allocated allocated = GroupOpening::Allocate(groups);
  Groups failed;
  {
    MutexLock lock(&state.mu);
    const bool staged = IsStaged(*groups.front());
    for (size_t i = 0; i < groups.size(); ++i)
      if (!state.EndOpening(groups[i], allocated.statuses[i], allocated.stage))
        failed.push_back(groups[i]);
    if (staged) state.stages.EndOpening(allocated.stage);
  }
  for (std::shared_ptr<Group>& group : failed) Deliver(std::move(group));
  groups.clear();
  allocated.stage.reset();
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
    group->status =
        Annotate(status, fmt::format("request {} of {} rows", group->request_id,
                                     group->rows.size()));
    Drop(stream, *group);
    stream.groups.Remove(*group);
    Requeue(stream);
    return false;
  }
  const bool waits = IsStaged(*group) && !begun;
  group->phase = waits ? Phase::kPlanned : Phase::kOpen;
  if (IsStaged(*group) && begun) DeviceStages::Enter(shared, group);
  return true;
}

void Scheduler::State::Finish(std::shared_ptr<State> state,
                              std::shared_ptr<SharedStage> shared) {
  const Clock& now = state->clock;
  FinishStage(std::move(shared), now,
              [state = std::move(state)](Groups groups) {
                for (std::shared_ptr<Group>& group : groups)
                  Deliver(std::move(group));
                MutexLock lock(&state->mu);
                state->stages.Finished();
                state->NoteOwing();
                state->progress.NotifyAll();
              });
}

void Scheduler::State::Deliver(std::shared_ptr<Group> ended) {
  const std::shared_ptr<Group> group = std::move(ended);
  // Everything that the group wrote to or read from ends here: stage, samples,
  // memory, lease. The lease is released after the answer, so that the answer
  // reports first that it is free.
  const std::shared_ptr<const void> lease = std::move(group->lease);
  const std::shared_ptr<const RowWork> work = std::move(group->work);
  const std::shared_ptr<GroupSink> sink = std::move(group->sink);
  group->stage.reset();
  group->supplied.clear();
  group->memory.reset();
  group->outputs = {};
  const size_t rows = group->rows.size();
  const bool placed = group->room.placed;
  auto sent = std::make_shared<SentGroup>(group.get(), rows);
  const StageScope handing(Stage::kGroup);
  FinishedGroup result{.request_id = group->request_id,
                       .group_id = group->group_id,
                       .rows = std::move(group->rows),
                       .status = std::move(group->status),
                       .placed = placed,
                       .slots = std::move(group->slots),
                       .lease = lease.get(),
                       .payload = {},
                       .took_us = sent->took_us(),
                       .owner = nullptr};
  SharedCounters& counters = *group->counters;
  if (result.status.ok()) {
    counters.rows_total += rows;
    if (placed) counters.rows_placed_total += rows;
    if (!placed) result.payload = sent->payload();
    result.owner = std::move(sent);
  } else {
    counters.row_errors_total += rows;
  }
  sink->OnGroup(std::move(result));
}

}  // namespace leat::worker
