// SPDX-License-Identifier: Apache-2.0
//
// Chooses the next row: start-time fair queueing between jobs and, in a job,
// between streams (row_queue.h). Virtual time is the time spent; the floor is
// the virtual time of the job chosen last, and a job that becomes eligible
// starts no lower. Also determines why threads find nothing to do.
#include <algorithm>
#include <optional>
#include <utility>

#include "worker/scheduler/state.h"

namespace leat::worker {
Scheduler::State::Next Scheduler::State::Look(const StreamState& stream) const {
  Next next{.ready = Ready::kNothing, .group = stream.groups.begin()};
  for (; next.group != stream.groups.end(); ++next.group) {
    const Group& group = *next.group->second;
    if (group.phase == Phase::kOpen &&
        (group.reads == nullptr || group.reads->ready() > 0)) {
      next.ready = Ready::kRow;
      break;
    }
    if (group.phase == Phase::kPlanned && !stream.opening &&
        IsRipe(stream, group) && HasStage(*stream.work, group.outputs.device)) {
      next.ready = Ready::kGroup;
      break;
    }
  }
  // The threads that read make the groups. A group goes before a new one unless
  // the new one is needed earlier.
  if (stream.ahead || stream.opening ||
      !stream.groups.RequestIsBefore(next.group))
    return next;
  const int device = DeviceOf(stream.groups.first_request()->request);
  if (opening.MayPlan(stream, opening.RowsOfNextGroup(stream),
                      /*credited=*/false) &&
      HasStage(*stream.work, device))
    return {.ready = Ready::kRequest, .group = stream.groups.end()};
  return next;
}

bool Scheduler::State::HasStage(const RowWork& work, int device) const {
  return !work.groups().staged(device >= 0) ||
         (!stages.opening() && work.groups().CanBegin(device));
}

void Scheduler::State::Requeue(StreamState& stream) {
  const StreamGroups& groups = stream.groups;
  RowQueue& queue = stream.job->queue;
  // The next row to compute; streams that read ahead have it in a group.
  const RequestPosition* first = nullptr;
  if (!stream.ahead)
    first = groups.Earliest(groups.begin());
  else if (!groups.empty())
    first = &groups.begin()->first.first;
  if (first != nullptr)
    queue.Put(&stream, StepOf(*first));
  else
    queue.Remove(&stream);
  if (!stream.ahead) return;
  first = groups.Earliest(groups.FirstUnread());
  if (first != nullptr)
    read_ahead.Put(&stream, StepOf(*first));
  else
    read_ahead.Remove(&stream);
}

StreamState* Scheduler::State::ChooseIn(Job& job, Next* next) {
  const auto look =
      [this](const RowQueue::Place& place) -> std::optional<RowQueue::Step> {
    mu.AssertHeld();
    const auto& stream = static_cast<const StreamState&>(place);
    const Next now = Look(stream);
    if (now.ready == Ready::kNothing) return std::nullopt;
    return StepOf(now.ready == Ready::kRequest
                      ? stream.groups.first_request()->position
                      : now.group->first.first);
  };
  auto* const chosen = static_cast<StreamState*>(
      job.queue.Choose(look, job.steps_per_epoch, options.cohort_steps));
  if (chosen != nullptr) *next = Look(*chosen);
  return chosen;
}

StreamState* Scheduler::State::Choose(Next* next) {
  StreamState* chosen = nullptr;
  Job* from = nullptr;
  for (auto& [key, job] : jobs) {
    Next now;
    StreamState* const stream = ChooseIn(job, &now);
    if (stream != nullptr && !job.eligible)
      job.vtime = std::max(job.vtime, floor);
    job.eligible = stream != nullptr;
    if (stream == nullptr || (from != nullptr && job.vtime >= from->vtime))
      continue;
    chosen = stream;
    from = &job;
    *next = now;
  }
  if (from != nullptr) floor = std::max(floor, from->vtime);
  return chosen;
}

Scheduler::JobRows Scheduler::State::Told(const std::string& name,
                                          const Job& job) const {
  JobRows told = job.told;
  told.job = name;
  told.streams = job.streams.size();
  told.groups_unsent = job.sending->groups_unsent;
  told.sending_ns_total = job.sending->ns;
  return told;
}

void Scheduler::State::AddQueued(StreamState& stream, ptrdiff_t rows) {
  for (size_t* queued :
       {&stream.rows_queued, &stream.job->rows_queued, &rows_queued})
    *queued = static_cast<size_t>(static_cast<ptrdiff_t>(*queued) + rows);
}

}  // namespace leat::worker
