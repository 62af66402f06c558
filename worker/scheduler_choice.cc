// SPDX-License-Identifier: Apache-2.0
//
// Which row is next: start-time fair queueing between jobs and, in a job,
// between streams (row_queue.h). Virtual time is the time spent; the floor is
// that of the last one chosen, and who becomes eligible starts no lower. And
// why threads find nothing.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "worker/scheduler_state.h"

namespace leat::worker {

Scheduler::State::Next Scheduler::State::NextOf(
    Ready ready, const StreamState& stream, GroupMap::const_iterator group) {
  const Position& position =
      ready == Ready::kAsk ? stream.asks.begin()->first : group->first.first;
  return {ready, group, {std::get<0>(position), std::get<1>(position)}};
}

Scheduler::State::Next Scheduler::State::Look(const StreamState& stream) const {
  Next next;
  auto it = stream.groups.begin();
  for (; it != stream.groups.end(); ++it) {
    const Group& group = *it->second;
    if (group.phase == Phase::kOpen &&
        (group.reads == nullptr || !group.reads->ready.empty())) {
      next = NextOf(Ready::kRow, stream, it);
      break;
    }
    if (group.phase == Phase::kPlanned && !stream.opening &&
        IsRipe(stream, group) && HasStage(*stream.work, group.outputs.device)) {
      next = NextOf(Ready::kGroup, stream, it);
      break;
    }
  }
  // The threads that read make the groups; and a group that is needed no later
  // goes before a new one.
  if (stream.ahead || stream.opening || stream.asks.empty() ||
      (next.ready != Ready::kNothing &&
       it->first.first <= stream.asks.begin()->first))
    return next;
  const int device = DeviceOf(stream.asks.begin()->second.ask);
  if (MayPlan(stream, stream.rows_per_group, /*credited=*/false) &&
      HasStage(*stream.work, device))
    return NextOf(Ready::kAsk, stream, stream.groups.end());
  return next;
}

bool Scheduler::State::MayPlan(const StreamState& stream, size_t most,
                               bool credited) const {
  const uint32_t held = stream.held->load();
  if (!credited && held >= stream.max_groups) return false;
  const PendingAsk& ask = stream.asks.begin()->second;
  if (ask.ask.memory != nullptr) return true;
  const size_t rows = std::min(most, ask.ask.rows.size() - ask.next);
  const size_t reserve = held == 0 ? 0 : pool->limit_bytes() / 4;
  // From what is booked for rows that storage may hold up, no job takes more
  // than it leaves.
  const size_t to_others = stream.ahead ? stream.job->booked : 0;
  return pool->CanReserve(rows * stream.row_bytes,
                          booked + std::max(reserve, to_others));
}

bool Scheduler::State::HasStage(const RowWork& work, int device) const {
  return !work.staged(device >= 0) || (!stage_opening && work.CanBegin(device));
}

// Of streams that read ahead, the threads that read make the groups.
void Scheduler::State::Requeue(StreamState& stream) {
  RequeueToRead(stream);
  RowQueue& queue = stream.job->queue;
  const bool asks = !stream.ahead && !stream.asks.empty();
  if (!asks && stream.groups.empty()) return queue.Remove(&stream);
  const Position& first =
      stream.groups.empty() || (asks && stream.asks.begin()->first <
                                            stream.groups.begin()->first.first)
          ? stream.asks.begin()->first
          : stream.groups.begin()->first.first;
  queue.Put(&stream, {std::get<0>(first), std::get<1>(first)});
}

StreamState* Scheduler::State::ChooseIn(Job& job, Next* next) {
  const auto look =
      [this](const RowQueue::Place& place) -> std::optional<RowQueue::Step> {
    mu.AssertHeld();
    const Next now = Look(static_cast<const StreamState&>(place));
    if (now.ready == Ready::kNothing) return std::nullopt;
    return now.step;
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

void Scheduler::State::NoteWaits(MonotonicTime now) {
  if (now <= waits_at) return;
  const auto spent = static_cast<uint64_t>(
      Duration(now - std::exchange(waits_at, now)).count());
  const auto threads = static_cast<size_t>(decode_threads);
  const auto at_work = static_cast<size_t>(std::max<int64_t>(
      0, static_cast<int64_t>(tasks_in_work) - tasks_waiting));
  const uint64_t decoders = spent * (threads - std::min(threads, at_work));
  const uint64_t readers = spent * static_cast<uint64_t>(std::max(
                                       0, read_threads - readers_running));
  if (rows_queued == 0) {
    decode_waits.idle_ns += decoders;
    read_waits.idle_ns += readers;
    return;
  }
  (readers_running > 0 ? decode_waits.input_ns : decode_waits.output_ns) +=
      decoders;
  // What no reader is given has been read, or lacks room.
  (streams_ahead == 0 ? read_waits.idle_ns : read_waits.output_ns) += readers;
}

}  // namespace leat::worker
