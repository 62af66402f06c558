// SPDX-License-Identifier: Apache-2.0
//
// Reading ahead: the threads that wait for storage before the decode threads.
//
// A record is read only for a row of a group. A group counts as unsent of its
// stream, and its buffer is booked, so neither full budgets nor consumers that
// do not read can keep records from being used: a row that was read needs a
// decode thread, and a slot on a device if it is computed there, and both
// become free without outside help. The buffer and the slot are taken when the
// records are there (IsRipe): a group that storage holds up has neither.
//
// Rows are given to threads in the plan's order; rows whose records one request
// reads go to one thread. They come back in any order: a row that storage holds
// up makes its group wait, but not the rows after it.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/scheduler/state.h"

namespace leat::worker {

Scheduler::State::Next Scheduler::State::LookToRead(
    const StreamState& stream) const {
  if (!stream.ahead) return {};
  const auto it = stream.groups.FirstUnread();
  if (stream.groups.RequestIsBefore(it) &&
      opening.MayPlan(stream, stream.rows_per_group, /*credited=*/false))
    return {.ready = Ready::kRequest, .group = stream.groups.end()};
  if (it == stream.groups.end()) return {};
  return {.ready = Ready::kRow, .group = it};
}

// A device's room is taken when nothing of the group has to come from storage
// any more. If its job may not read on (one record is a good part of the
// bytes), the room is taken for the rows that are there, which lets the others
// be read.
bool Scheduler::State::IsRipe(const StreamState& stream,
                              const Group& group) const {
  return IsComplete(group) ||
         (group.reads->ready() > 0 &&
          (!IsStaged(group) || !read_ahead.HasBytesLeft(stream)));
}

StreamState* Scheduler::State::ChooseToRead(Next* next) {
  const auto look = [this, next](const ReadAhead::Stream& stream) {
    mu.AssertHeld();
    const Next now = LookToRead(static_cast<const StreamState&>(stream));
    if (now.ready == Ready::kNothing) return false;
    *next = now;
    return true;
  };
  return static_cast<StreamState*>(read_ahead.Choose(look));
}

bool Scheduler::State::ReaderWanted() {
  Next next;
  return readers_idle > 0 && read_ahead.streams() > 0 &&
         ChooseToRead(&next) != nullptr;
}

bool Scheduler::State::BeginRead(ReadTask* task) {
  Next next;
  StreamState* const stream = ChooseToRead(&next);
  if (stream == nullptr) return false;
  auto it = next.group;
  if (next.ready == Ready::kRequest)
    it = opening.Plan(*stream, stream->rows_per_group);
  const Group& group = *it->second;
  const auto left = std::span(group.samples).subspan(group.reads->begun());
  const size_t together = stream->work->CountTogether(
      left.first(std::min(left.size(), ReadAhead::kMaxRowsAtOnce)));
  task->work = stream->work;
  task->trace = group.trace;
  task->span = group.span;
  task->read = read_ahead.Begin(group.reads, together);
  for (size_t i = 0; i < task->read.rows; ++i) {
    const size_t row = task->read.first + i;
    task->rows.push_back({.epoch = group.epoch,
                          .step = group.step,
                          .row = group.rows[row],
                          .sample = group.samples[row]});
  }
  Requeue(*stream);
  return true;
}

absl::Status Scheduler::StartReading() {
  absl::Status status;
  size_t started = 0;
  {
    MutexLock lock(&readers_mu_);
    if (!readers_.empty() || state_->stopping.load()) return absl::OkStatus();
    for (int i = 0; i < state_->options.read_threads && status.ok(); ++i)
      status = StartReader(i);
    started = readers_.size();
  }
  if (status.ok() || started > 0) {
    if (!status.ok())
      LOG_WARN("scheduler.read_threads started={} want={} error=\"{}\"",
               started, state_->options.read_threads, Message(status));
    return absl::OkStatus();
  }
  return WithFault(std::move(status), Fault::kWorker);
}

absl::Status Scheduler::StartReader(int number) {
  {
    MutexLock lock(&state_->mu);
    ++state_->read_threads;
  }
  const auto end = [this] {
    MutexLock lock(&state_->mu);
    --state_->read_threads;
    state_->progress.NotifyAll();
  };
  std::thread thread;
  absl::Status status = StartThread(
      fmt::format("read-{}", number),
      [this, end] {
        ReadLoop();
        end();
      },
      &thread);
  if (status.ok())
    readers_.push_back(std::move(thread));
  else
    end();
  return status;
}

void Scheduler::ReadLoop() {
  const StageThread enrolled(&state_->read_clocks);
  bool idle = false;
  while (!state_->stopping.load()) {
    const uint32_t seen = state_->reading.Prepare();
    if (state_->stopping.load()) return;
    idle = !ReadSome(idle);
    if (idle) state_->reading.Wait(seen);
  }
}

bool Scheduler::ReadSome(bool was_idle) {
  State::ReadTask task;
  bool begun = false, is_short = false;
  const MonotonicTime now = state_->clock.Now();
  {
    MutexLock lock(&state_->mu);
    state_->NoteWaits(now);
    if (was_idle) --state_->readers_idle;
    begun = state_->BeginRead(&task);
    if (!begun) {
      ++state_->readers_idle;
      is_short = state_->read_ahead.IsShortOfBytes();
    }
  }
  if (!begun) {
    // Groups may be ripe for this reason alone.
    if (is_short) state_->wake->Notify();
    return false;
  }
  state_->reading.Notify();  // another one may find more
  const MonotonicTime start = state_->clock.Now();
  std::vector<RowRecords> records;
  {
    const SpanScope reading(task.trace, SpanKind::kReadAhead, task.span,
                            task.rows.size(), state_->clock);
    records = state_->Read(task);
  }
  const MonotonicTime end = state_->clock.Now();
  {
    MutexLock lock(&state_->mu);
    state_->NoteWaits(end);
    state_->read_ahead.End(task.read, records, end - start);
  }
  state_->wake->Notify();
  return true;
}

std::vector<RowRecords> Scheduler::State::Read(const ReadTask& task) const {
  std::vector<RowRecords> records;
  records.reserve(task.rows.size());
  std::vector<uint64_t> samples;
  for (const RowOf& row : task.rows) samples.push_back(row.sample);
  while (records.size() < samples.size() && !task.read.group->dropped()) {
    const size_t at = records.size();
    if (stopping.load()) {
      records.push_back({{samples[at], WithFault(Cancelled("the worker stops"),
                                                 Fault::kTransient)}});
      continue;
    }
    const size_t count =
        task.work->CountTogether(std::span(samples).subspan(at));
    if (count == 1)
      records.push_back(task.work->ReadAhead(task.rows[at]));
    else
      for (RowRecords& each :
           task.work->ReadTogether(std::span(task.rows).subspan(at, count)))
        records.push_back(std::move(each));
  }
  return records;
}

}  // namespace leat::worker
