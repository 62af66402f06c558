// SPDX-License-Identifier: Apache-2.0
//
// Which row is next: start-time fair queueing between jobs and, in a job,
// between streams (row_queue.h). Virtual time is the time spent; the floor is
// that of the last one chosen, and who becomes eligible starts no lower. And
// why threads find nothing.
#include <algorithm>
#include <optional>
#include <utility>

#include "worker/scheduler/state.h"

namespace leat::worker {
namespace {

// Rows that are written in place make groups of up to so many times the rows
// that are sent by bytes, as far as one thread computes them within this time.
constexpr size_t kPlacedGroups = 4;
constexpr double kPlacedGroupNs = 50e6;

}  // namespace

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
  // The threads that read make the groups; and a group that is needed no later
  // goes before a new one.
  if (stream.ahead || stream.opening || !stream.groups.AskIsBefore(next.group))
    return next;
  const int device = DeviceOf(stream.groups.first_ask()->ask);
  if (MayPlan(stream, RowsOfNextGroup(stream), /*credited=*/false) &&
      HasStage(*stream.work, device))
    return {.ready = Ready::kAsk, .group = stream.groups.end()};
  return next;
}

// Rows that are written in place take no buffer and no bytes of a message, so
// that a larger group costs its consumer less a row. The consumer learns of the
// group's first row when the last one is there, which must not be much later.
size_t Scheduler::State::RowsOfNextGroup(const StreamState& stream) const {
  const RowAsk& ask = stream.groups.first_ask()->ask;
  if (ask.memory == nullptr || stream.work->staged(DeviceOf(ask) >= 0))
    return stream.rows_per_group;
  const double soon = kPlacedGroupNs / std::max(stream.job->mean_ns, 1.0);
  const double most = static_cast<double>(std::min(
      kPlacedGroups * stream.rows_per_group, options.max_rows_per_group));
  return std::max(stream.rows_per_group,
                  static_cast<size_t>(std::min(soon, most)));
}

bool Scheduler::State::MayPlan(const StreamState& stream, size_t most,
                               bool credited) const {
  const uint32_t held = stream.held->load();
  if (!credited && held >= stream.max_groups) return false;
  const PendingAsk& ask = *stream.groups.first_ask();
  if (ask.ask.memory != nullptr) return true;
  const size_t rows = std::min(most, ask.left());
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

void Scheduler::State::Requeue(StreamState& stream) {
  const StreamGroups& groups = stream.groups;
  RowQueue& queue = stream.job->queue;
  // The next row to compute; of streams that read ahead, it is in a group.
  const Position* first = nullptr;
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
    return StepOf(now.ready == Ready::kAsk ? stream.groups.first_ask()->position
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

void Scheduler::State::NoteWaits(MonotonicTime now) {
  if (now <= waits_at) return;
  const auto spent = static_cast<uint64_t>(
      Duration(now - std::exchange(waits_at, now)).count());
  const auto threads = static_cast<size_t>(decode_threads);
  const auto at_work = static_cast<size_t>(std::max<int64_t>(
      0, static_cast<int64_t>(tasks_in_work) - tasks_waiting));
  const uint64_t decoders = spent * (threads - std::min(threads, at_work));
  for (auto& [name, job] : jobs) NoteJobWaits(job, spent);
  const int reading = read_ahead.threads_reading();
  const uint64_t readers =
      spent * static_cast<uint64_t>(std::max(0, read_threads - reading));
  if (rows_queued == 0) {
    decode_waits.idle_ns += decoders;
    read_waits.idle_ns += readers;
    return;
  }
  (reading > 0 ? decode_waits.input_ns : decode_waits.output_ns) += decoders;
  // What no reader is given has been read, or lacks room.
  (read_ahead.streams() == 0 ? read_waits.idle_ns : read_waits.output_ns) +=
      readers;
}

// A record that no thread reads yet waits for records that others read, as long
// as all that read are busy.
void Scheduler::State::NoteJobWaits(Job& job, uint64_t spent) {
  const StreamState& any = *job.streams.begin()->second;
  const ReadAhead::Load load =
      any.ahead ? read_ahead.LoadOf(any) : ReadAhead::Load();
  job.told.fetch_ns += spent * static_cast<uint64_t>(load.threads);
  if (job.rows_queued == 0) return;
  const bool may_begin = any.ahead ? load.rows_ready > 0 : job.eligible;
  const bool reads =
      any.ahead &&
      (load.threads > 0 || read_ahead.threads_reading() >= read_threads);
  (may_begin ? job.told.thread_ns
   : reads   ? job.told.input_ns
             : job.told.output_ns) += spent;
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
