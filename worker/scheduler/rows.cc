// SPDX-License-Identifier: Apache-2.0
//
// Begins and ends rows, and drops groups that are not wanted any more.
#include <algorithm>
#include <utility>
#include <vector>

#include "worker/scheduler/state.h"

namespace leat::worker {
namespace {

// A thread takes as many rows of a group as it computes in this time, so that
// small rows do not cost more in the scheduler than in their computation.
constexpr double kComputeAtOnceNs = 50e3;
constexpr double kMaxComputedAtOnce = 256;

}  // namespace

// Returns the number of rows that take kComputeAtOnceNs by the job's mean, but
// leaves each other thread as many of all waiting rows.
size_t Scheduler::State::RowsAtOnce(const StreamState& stream,
                                    const Group& group) const {
  const size_t ready = group.reads != nullptr ? group.reads->ready()
                                              : group.rows.size() - group.begun;
  const double share =
      static_cast<double>(rows_queued) / std::max(1, options.threads);
  const double wanted = kComputeAtOnceNs / std::max(stream.job->mean_ns, 1.0);
  const double most =
      std::min({wanted, share, kMaxComputedAtOnce, static_cast<double>(ready)});
  return static_cast<size_t>(std::max(most, 1.0));
}

bool Scheduler::State::Begin(Task* task) {
  task->finishes = stages.TakeToFinish();
  if (task->finishes != nullptr) return true;
  Next next;
  StreamState* const stream = Choose(&next);
  if (stream == nullptr) return false;
  auto it = next.group;
  if (next.ready == Ready::kRequest)
    it = opening.Plan(*stream, opening.RowsOfNextGroup(*stream));
  const std::shared_ptr<Group> group = it->second;
  ++tasks_in_work;
  if (group->phase == Phase::kPlanned &&
      !BeginOpening(*stream, group, &task->opens))
    return true;
  task->group = group;
  const size_t rows = RowsAtOnce(*stream, *group);
  task->rows.reserve(rows);
  for (size_t i = 0; i < rows; ++i, ++group->begun)
    task->rows.push_back(group->reads != nullptr
                             ? read_ahead.Take(*group->reads)
                             : TaskRow{.index = group->begun, .records = {}});
  task->charged_ns = stream->job->mean_ns * static_cast<double>(rows);
  stream->job->queue.Spend(stream, task->charged_ns);
  stream->job->vtime += task->charged_ns;
  AddQueued(*stream, -static_cast<ptrdiff_t>(rows));
  if (group->begun == group->rows.size()) stream->groups.Remove(*group);
  Requeue(*stream);
  return true;
}

Scheduler::State::Ended Scheduler::State::End(const Task& task,
                                              const Computed& computed,
                                              Duration spent) {
  Group& group = *task.group;
  group.done += task.rows.size();
  if (!computed.status.ok() &&
      (group.status.ok() || computed.failed_at < group.failed_at)) {
    group.status = computed.status;
    group.failed_at = computed.failed_at;
  }
  if (const auto it = streams.find(group.stream); it != streams.end()) {
    const double ns = static_cast<double>(spent.count());
    Job& job = *it->second->job;
    job.queue.Spend(it->second.get(), ns - task.charged_ns);
    job.vtime += ns - task.charged_ns;
    job.told.rows_total += task.rows.size();
    job.told.read_ns += computed.read_ns;
    job.told.decode_ns += computed.decode_ns;
    if (computed.copied) {
      job.told.rows_shared_total += task.rows.size();
    } else {  // the mean of computed rows
      const auto rows = static_cast<double>(task.rows.size());
      job.mean_ns += (ns / rows - job.mean_ns) * std::min(rows / 32, 1.0);
    }
  }
  const bool complete = !group.dropped && group.done == group.rows.size();
  if (group.stage == nullptr) return {.delivers = complete};
  // A group that failed is answered at once: the rows of others continue
  // without it.
  const bool leaves = complete && !group.status.ok();
  return {.delivers = leaves,
          .finishes = stages.Prepared(group, task.rows.size(), leaves)};
}

void Scheduler::State::Drop(StreamState& stream, Group& group) {
  group.dropped = true;
  const size_t left = group.rows.size() - group.begun;
  AddQueued(stream, -static_cast<ptrdiff_t>(left));
  opening.Unbook(stream, group);
  // Freed with the group, without the lock.
  if (group.reads != nullptr) group.unwanted = read_ahead.Drop(*group.reads);
  if (stages.Leave(group, left)) wake->Notify();
}

}  // namespace leat::worker
