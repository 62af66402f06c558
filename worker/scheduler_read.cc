// SPDX-License-Identifier: Apache-2.0
//
// Reading ahead: the threads that wait for storage in front of the decode
// threads.
//
// A record is read for a row of a group only. A group counts as unsent of its
// stream, and its buffer is booked, so neither full budgets nor consumers that
// do not read can keep records where they are: a row that was read needs a
// decode thread, and a place on a device if it is computed there, and those
// come back by themselves. The buffer and that place are taken when the
// records are there (IsRipe): what storage holds up holds neither.
//
// Rows are given to threads in the plan's order; those whose records one
// request brings go to one thread. They come back in any order: a row that
// storage holds up keeps its group waiting, not those after it.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/blame.h"
#include "core/log.h"
#include "core/stages.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/scheduler_state.h"

namespace leat::worker {
namespace {

// A thread takes as many rows as it reads in this time: small records that lie
// in memory already are not worth a change of threads each.
constexpr double kReadAtOnceNs = 200e3;
constexpr int kMaxRowsAtOnce = 64;

uint64_t BytesOf(const RowRecords& records) {
  uint64_t bytes = 0;
  for (const ReadRecord& record : records)
    if (record.stored.ok()) bytes += record.stored->bytes();
  return bytes;
}

}  // namespace

Scheduler::State::Next Scheduler::State::LookToRead(
    const StreamState& stream) const {
  if (!stream.ahead) return {};
  const auto it = FirstUnread(stream);
  const bool found = it != stream.groups.end();
  if (!stream.asks.empty() &&
      (!found || it->first.first > stream.asks.begin()->first) &&
      MayPlan(stream, stream.rows_per_group, /*credited=*/false))
    return NextOf(Ready::kAsk, stream, stream.groups.end());
  return found ? NextOf(Ready::kRow, stream, it) : Next();
}

double Scheduler::State::BytesLeft() const {
  return static_cast<double>(options.read_ahead_bytes) -
         static_cast<double>(bytes_ahead);
}

// No job takes more than it leaves: alone, half; the next one, half of the
// rest. So a job whose storage hangs never holds everything.
bool Scheduler::State::HasBytesLeft(const Job& job) const {
  const ReadAccount& account = *job.reads;
  return account.bytes == 0 ||
         static_cast<double>(account.bytes) + account.mean_bytes <= BytesLeft();
}

bool Scheduler::State::MayRead(const Job& job) const {
  return job.reads->threads < options.read_threads - readers_running &&
         HasBytesLeft(job);
}

// A device's room is taken when nothing of the group has to come from storage
// any more. Where its job may not read on (one record is a good part of the
// bytes), with what is there: taking it lets the others be read.
bool Scheduler::State::IsRipe(const StreamState& stream,
                              const Group& group) const {
  return IsComplete(group) ||
         (!group.reads->ready.empty() &&
          (!IsStaged(group) || !HasBytesLeft(*stream.job)));
}

// The first group of which threads were not given all rows.
GroupMap::const_iterator Scheduler::State::FirstUnread(
    const StreamState& stream) {
  return std::find_if(
      stream.groups.begin(), stream.groups.end(), [](const auto& each) {
        return each.second->reads->asked < each.second->rows.size();
      });
}

void Scheduler::State::RequeueToRead(StreamState& stream) {
  if (!stream.ahead) return;
  const auto it = FirstUnread(stream);
  const bool group = it != stream.groups.end(), asks = !stream.asks.empty();
  std::optional<ReadPlace> place;
  if (group || asks) {
    const Position& first =
        !group || (asks && stream.asks.begin()->first < it->first.first)
            ? stream.asks.begin()->first
            : it->first.first;
    place = ReadPlace(stream.rows_ahead,
                      {std::get<0>(first), std::get<1>(first)}, stream.id);
  }
  if (place == stream.to_read) return;
  auto& to_read = stream.job->to_read;
  if (stream.to_read && place) {
    auto node = to_read.extract(*stream.to_read);
    node.key() = *place;
    to_read.insert(std::move(node));
  } else if (place) {
    to_read.emplace(*place, &stream);
  } else {
    to_read.erase(*stream.to_read);
  }
  stream.to_read = place;
}

// Chooses, for the job with the fewest threads, the stream with the fewest rows
// ahead; among equals, the earliest step. It looks at each stream before it
// that has to wait for memory.
StreamState* Scheduler::State::ChooseToRead(Next* next) {
  using Rank = std::pair<int, ReadPlace>;
  StreamState* chosen = nullptr;
  Rank best;
  for (const auto& [key, job] : jobs) {
    if (!MayRead(job)) continue;
    for (const auto& [place, stream] : job.to_read) {
      const Rank rank(job.reads->threads, place);
      if (chosen != nullptr && rank >= best) break;
      const Next now = LookToRead(*stream);
      if (now.ready == Ready::kNothing) continue;
      chosen = stream;
      best = rank;
      *next = now;
      break;
    }
  }
  return chosen;
}

bool Scheduler::State::ReaderWanted() {
  Next next;
  return readers_idle > 0 && streams_ahead > 0 &&
         ChooseToRead(&next) != nullptr;
}

bool Scheduler::State::BeginRead(ReadTask* task) {
  Next next;
  StreamState* const stream = ChooseToRead(&next);
  if (stream == nullptr) return false;
  auto it = next.group;
  if (next.ready == Ready::kAsk) it = Plan(*stream, stream->rows_per_group);
  const Group& group = *it->second;
  GroupReads& reads = *group.reads;
  ReadAccount& account = *reads.account;
  const double room = BytesLeft() - static_cast<double>(account.bytes);
  const auto left = std::span(group.samples).subspan(reads.asked);
  const auto together = static_cast<double>(stream->work->CountTogether(
      left.first(std::min(left.size(), size_t{kMaxRowsAtOnce}))));
  const double rows =
      std::clamp(std::min(std::max(kReadAtOnceNs / account.mean_ns, together),
                          room / std::max(account.mean_bytes, 1.0)),
                 1.0, double{kMaxRowsAtOnce});
  task->stream = stream->id;
  task->work = stream->work;
  task->reads = group.reads;
  task->first = reads.asked;
  const size_t end =
      std::min(group.rows.size(), reads.asked + static_cast<size_t>(rows));
  for (; reads.asked < end; ++reads.asked)
    task->rows.push_back({.epoch = group.epoch,
                          .step = group.step,
                          .row = group.rows[reads.asked],
                          .sample = group.samples[reads.asked]});
  task->reserved = static_cast<uint64_t>(
      account.mean_bytes * static_cast<double>(task->rows.size()));
  account.bytes += task->reserved;
  bytes_ahead += task->reserved;
  ++account.threads;
  ++readers_running;
  stream->rows_ahead += task->rows.size();
  Requeue(*stream);
  return true;
}

void Scheduler::State::EndRead(const ReadTask& task,
                               std::vector<RowRecords>& records,
                               Duration spent) {
  GroupReads& reads = *task.reads;
  ReadAccount& account = *reads.account;
  uint64_t bytes = 0;
  for (const RowRecords& each : records) bytes += BytesOf(each);
  if (!records.empty()) {
    const auto rows = static_cast<double>(records.size());
    account.mean_bytes +=
        (static_cast<double>(bytes) / rows - account.mean_bytes) / 32;
    account.mean_ns +=
        (static_cast<double>(spent.count()) / rows - account.mean_ns) / 32;
  }
  --account.threads;
  --readers_running;
  if (reads.dropped) bytes = 0;
  account.bytes += bytes - task.reserved;
  bytes_ahead += bytes - task.reserved;
  if (reads.dropped) return;
  for (size_t i = 0; i < records.size(); ++i) {
    reads.records[task.first + i] = std::move(records[i]);
    reads.ready.insert(reads.ready.end(), task.first + i);
  }
  streams.find(task.stream)->second->rows_ready += records.size();
}

Scheduler::State::TaskRow Scheduler::State::TakeReady(StreamState& stream,
                                                      Group& group) {
  GroupReads& reads = *group.reads;
  TaskRow row{.index = *reads.ready.begin(), .records = {}};
  reads.ready.erase(reads.ready.begin());
  row.records = std::move(reads.records[row.index]);
  const uint64_t bytes = BytesOf(row.records);
  reads.account->bytes -= bytes;
  bytes_ahead -= bytes;
  --stream.rows_ready;
  --stream.rows_ahead;
  return row;
}

void Scheduler::State::ForgetReads(StreamState& stream, Group& group) {
  if (group.reads == nullptr) return;
  GroupReads& reads = *group.reads;
  reads.dropped = true;
  stream.rows_ready -= reads.ready.size();
  stream.rows_ahead -= reads.asked - group.begun;
  for (const size_t row : reads.ready) {
    const uint64_t bytes = BytesOf(reads.records[row]);
    reads.account->bytes -= bytes;
    bytes_ahead -= bytes;
  }
  reads.ready.clear();
  // Freed with the group, without the lock.
  group.unwanted = std::exchange(reads.records, {});
}

bool Scheduler::State::IsShortOfBytes() const {
  return std::any_of(jobs.begin(), jobs.end(), [this](const auto& each) {
    mu.AssertHeld();
    return !HasBytesLeft(each.second);
  });
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
  return WithBlame(std::move(status), Blame::kWorker);
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
      is_short = state_->IsShortOfBytes();
    }
  }
  if (!begun) {
    // Groups may be ripe for that alone.
    if (is_short) state_->wake->Notify();
    return false;
  }
  state_->reading.Notify();  // another one may find more
  const MonotonicTime start = state_->clock.Now();
  std::vector<RowRecords> records;
  {
    const SpanScope reading(task.reads->trace, SpanKind::kReadAhead,
                            task.reads->span, task.rows.size(), state_->clock);
    records = state_->Read(task);
  }
  const MonotonicTime end = state_->clock.Now();
  {
    MutexLock lock(&state_->mu);
    state_->NoteWaits(end);
    state_->EndRead(task, records, end - start);
  }
  state_->wake->Notify();
  return true;
}

std::vector<RowRecords> Scheduler::State::Read(const ReadTask& task) const {
  std::vector<RowRecords> records;
  records.reserve(task.rows.size());
  std::vector<uint64_t> samples;
  for (const RowOf& row : task.rows) samples.push_back(row.sample);
  while (records.size() < samples.size() && !task.reads->dropped) {
    const size_t at = records.size();
    if (stopping.load()) {
      records.push_back({{samples[at], WithBlame(Cancelled("the worker stops"),
                                                 Blame::kPassing)}});
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
