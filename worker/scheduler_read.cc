// SPDX-License-Identifier: Apache-2.0
//
// Reading ahead: the threads that wait for storage in front of the decode
// threads.
//
// A record is read for a row of an open group only, which has its buffer, or
// its place in lent memory, or its stage. So a row that was read needs a decode
// thread and nothing else, and neither full budgets nor consumers that do not
// read can keep records where they are.
//
// Rows are given to threads in the plan's order; those whose records one
// request brings go to one thread. They come back in any order: a row that
// storage holds up keeps its group waiting, not those after it.
#include <pthread.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "core/status.h"
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

GroupMap::const_iterator Scheduler::State::NextToBegin(
    const StreamState& stream) {
  if (!stream.ahead) return stream.open.begin();
  return std::find_if(
      stream.open.begin(), stream.open.end(),
      [](const auto& each) { return !each.second->reads->ready.empty(); });
}

GroupMap::const_iterator Scheduler::State::NextToRead(
    const StreamState& stream) {
  return std::find_if(
      stream.open.begin(), stream.open.end(), [](const auto& each) {
        return each.second->reads->asked < each.second->rows.size();
      });
}

Scheduler::State::Ready Scheduler::State::LookToRead(
    const StreamState& stream) const {
  if (!stream.ahead) return Ready::kNothing;
  return LookAt(stream, NextToRead(stream));
}

double Scheduler::State::BytesLeft() const {
  return static_cast<double>(options.read_ahead_bytes) -
         static_cast<double>(bytes_ahead);
}

// No job takes more than it leaves: alone, half; the next one, half of the
// rest. So a job whose storage hangs never holds everything.
bool Scheduler::State::MayRead(const Job& job) const {
  const ReadAccount& account = *job.reads;
  if (account.threads >= options.read_threads - readers_running) return false;
  if (account.bytes == 0) return true;
  return static_cast<double>(account.bytes) + account.mean_bytes <= BytesLeft();
}

// Of the job with the fewest threads, the stream with the fewest rows ahead;
// among equals, the earliest step.
StreamState* Scheduler::State::ChooseToRead(Ready* ready) {
  using Rank = std::tuple<int, size_t, std::pair<uint64_t, uint64_t>>;
  StreamState* chosen = nullptr;
  Rank best;
  for (const auto& [key, job] : jobs) {
    if (!MayRead(job)) continue;
    for (const auto& [id, stream] : job.streams) {
      const Ready now = LookToRead(*stream);
      if (now == Ready::kNothing) continue;
      const Position& position = now == Ready::kOpenGroup
                                     ? NextToRead(*stream)->first.first
                                     : stream->asks.begin()->first;
      const Rank rank(job.reads->threads, stream->rows_ahead,
                      {std::get<0>(position), std::get<1>(position)});
      if (chosen != nullptr && rank >= best) continue;
      chosen = stream;
      best = rank;
      *ready = now;
    }
  }
  return chosen;
}

bool Scheduler::State::ReaderWanted() {
  Ready ready = Ready::kNothing;
  return readers_idle > 0 && streams_ahead > 0 &&
         ChooseToRead(&ready) != nullptr;
}

bool Scheduler::State::BeginRead(ReadTask* task) {
  StreamState* const stream = ChooseAndOpen(/*to_read=*/true);
  if (stream == nullptr) return false;
  const Group& group = *NextToRead(*stream)->second;
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
  return true;
}

void Scheduler::State::EndRead(const ReadTask& task,
                               std::vector<RowRecords> records,
                               Duration spent) {
  GroupReads& reads = *task.reads;
  ReadAccount& account = *reads.account;
  const auto rows = static_cast<double>(records.size());
  uint64_t bytes = 0;
  for (const RowRecords& each : records) bytes += BytesOf(each);
  account.mean_bytes +=
      (static_cast<double>(bytes) / rows - account.mean_bytes) / 32;
  account.mean_ns +=
      (static_cast<double>(spent.count()) / rows - account.mean_ns) / 32;
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

void Scheduler::State::TakeReady(StreamState& stream, Task* task) {
  GroupReads& reads = *task->group->reads;
  task->index = *reads.ready.begin();
  reads.ready.erase(reads.ready.begin());
  task->records = std::move(reads.records[task->index]);
  const uint64_t bytes = BytesOf(task->records);
  reads.account->bytes -= bytes;
  bytes_ahead -= bytes;
  --stream.rows_ready;
  --stream.rows_ahead;
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
}

void Scheduler::StartReading() {
  MutexLock lock(&readers_mu_);
  if (!readers_.empty() || state_->stopping.load()) return;
  for (int i = 0; i < state_->options.read_threads; ++i)
    readers_.emplace_back([this, i] {
      pthread_setname_np(pthread_self(), fmt::format("read-{}", i).c_str());
      bool idle = false;
      while (!state_->stopping.load()) {
        const uint32_t seen = state_->reading.Prepare();
        if (state_->stopping.load()) return;
        idle = !ReadSome(idle);
        if (idle) state_->reading.Wait(seen);
      }
    });
}

bool Scheduler::ReadSome(bool was_idle) {
  State::ReadTask task;
  {
    MutexLock lock(&state_->mu);
    if (was_idle) --state_->readers_idle;
    if (!state_->BeginRead(&task)) {
      ++state_->readers_idle;
      return false;
    }
  }
  state_->reading.Notify();  // another one may find more
  std::vector<RowRecords> records;
  records.reserve(task.rows.size());
  const MonotonicTime start = state_->clock.Now();
  std::vector<uint64_t> samples;
  for (const RowOf& row : task.rows) samples.push_back(row.sample);
  while (records.size() < samples.size()) {
    const size_t at = records.size();
    if (state_->stopping.load()) {
      records.push_back({{samples[at], Cancelled("the worker stops")}});
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
  const Duration spent = state_->clock.Now() - start;
  {
    MutexLock lock(&state_->mu);
    state_->EndRead(task, std::move(records), spent);
  }
  state_->wake->Notify();
  return true;
}

}  // namespace leat::worker
