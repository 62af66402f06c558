// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/scheduler/state.h"

namespace leat::worker {

Scheduler::Scheduler(SchedulerOptions options, BufferPool* pool,
                     std::shared_ptr<WakeSignal> wake, const Clock& clock)
    : state_(std::make_shared<State>(std::move(options), pool, std::move(wake),
                                     clock)) {
  for (int i = 0; i < state_->options.threads && started_.ok(); ++i) {
    {
      MutexLock lock(&state_->mu);
      ++state_->decode_threads;
    }
    const auto end = [this] {
      MutexLock lock(&state_->mu);
      --state_->decode_threads;
      state_->progress.NotifyAll();
    };
    std::thread thread;
    started_ = StartThread(
        fmt::format("decode-{}", i),
        [this, end] {
          DecodeLoop();
          end();
        },
        &thread);
    if (started_.ok())
      threads_.push_back(std::move(thread));
    else
      end();
  }
}

void Scheduler::DecodeLoop() {
  const StageThread enrolled(&state_->decode_clocks);
  std::unique_ptr<ThreadState> state;
  if (state_->options.make_thread_state)
    state = state_->options.make_thread_state();
  while (!state_->stopping.load()) {
    const uint32_t seen = state_->wake->Prepare();
    if (!state_->stopping.load() && !RunOne(state.get()))
      state_->wake->Wait(seen);
  }
}

Scheduler::~Scheduler() {
  Stop();
  // Groups end here, and not when the end of the last stage releases the state.
  absl::flat_hash_map<uint64_t, std::unique_ptr<StreamState>> streams;
  Groups groups;
  MutexLock lock(&state_->mu);
  streams.swap(state_->streams);
  for (const auto& [id, stream] : streams)
    if (stream->ahead) state_->read_ahead.Close(stream.get());
  state_->jobs.clear();
  groups = state_->stages.TakeGroups();
}

Scheduler::Left Scheduler::Stop(MonotonicTime deadline) {
  state_->stopping = true;
  state_->wake->NotifyAll();
  state_->reading.NotifyAll();
  { MutexLock no_more_are_started(&readers_mu_); }
  Left left;
  {
    MutexLock lock(&state_->mu);
    const auto look = [&] {
      state_->mu.AssertHeld();
      left = {state_->decode_threads, state_->read_threads,
              state_->stages.in_work()};
      return left.none();
    };
    while (!look() && state_->progress.WaitUntil(&state_->mu, deadline)) {
    }
    look();
  }
  if (left.decode_threads == 0)
    for (std::thread& thread : std::exchange(threads_, {})) thread.join();
  MutexLock lock(&readers_mu_);
  if (left.read_threads == 0)
    for (std::thread& thread : std::exchange(readers_, {})) thread.join();
  return left;
}

absl::StatusOr<Scheduler::StreamId> Scheduler::OpenStream(
    std::shared_ptr<const RowWork> work, std::shared_ptr<GroupSink> sink) {
  auto stream = std::make_unique<StreamState>();
  for (const size_t bytes : work->field_bytes()) stream->row_bytes += bytes;
  const size_t limit = state_->pool->limit_bytes();
  if (BufferPool::ClassBytes(stream->row_bytes) > limit / 2)
    return ResourceExhausted(
        "a row of {} bytes does not fit the worker's buffers of {} bytes",
        stream->row_bytes, limit);
  stream->rows_per_group = std::clamp<size_t>(
      std::min(state_->options.group_bytes, limit / 4) / stream->row_bytes, 1,
      std::min(state_->options.max_rows_per_group, work->groups().most_rows()));
  if (stream->rows_per_group > state_->options.rows_at_once)
    stream->rows_per_group -=
        stream->rows_per_group % state_->options.rows_at_once;
  const size_t threads = static_cast<size_t>(state_->options.threads);
  stream->max_groups = std::max<size_t>(
      state_->options.max_unsent_groups_per_stream,
      (threads + stream->rows_per_group - 1) / stream->rows_per_group + 1);
  stream->ahead = work->reads_ahead() && state_->options.read_threads > 0;
  if (stream->ahead) {
    RETURN_IF_ERROR(StartReading());
    const auto readers = static_cast<size_t>(state_->options.read_threads);
    stream->max_groups = std::max(
        stream->max_groups,
        (readers + stream->rows_per_group - 1) / stream->rows_per_group + 1);
  }
  stream->work = std::move(work);
  stream->sink = std::move(sink);
  if (const Digest* const key = stream->work->sharing_key(); key != nullptr)
    stream->shared = state_->shared_rows.Get(*key, stream->row_bytes);
  MutexLock lock(&state_->mu);
  if (state_->streams.size() >= state_->options.max_streams)
    return ResourceExhausted("{} streams are open: the limit",
                             state_->options.max_streams);
  const StreamId id = stream->id = state_->next_stream++;
  Job& job = state_->jobs[stream->work->job_key()];
  stream->job = &job;
  job.steps_per_epoch = stream->work->steps_per_epoch();
  job.streams.emplace(id, stream.get());
  if (stream->ahead)
    state_->read_ahead.Open(stream.get(), stream->work->job_key());
  if (stream->shared != nullptr) stream->shared->AddStream();
  state_->streams.emplace(id, std::move(stream));
  return id;
}

namespace {

absl::Status CheckMemory(const RowRequest& request, const RowWork& work) {
  const SharedMemory& memory = *request.memory;
  if (request.slots.size() != request.rows.size())
    return InvalidArgument("request {}: {} rows and {} slots",
                           request.request_id, request.rows.size(),
                           request.slots.size());
  for (const uint32_t slot : request.slots)
    if (slot >= memory.rows())
      return InvalidArgument("request {}: slot {}: want less than {}",
                             request.request_id, slot, memory.rows());
  if (memory.field_offsets().size() != work.field_bytes().size())
    return InvalidArgument("request {}: memory of {} fields: want {}",
                           request.request_id, memory.field_offsets().size(),
                           work.field_bytes().size());
  if (memory.device() >= 0 && !work.groups().staged(true))
    return InvalidArgument(
        "request {}: this job's rows go to the host's memory",
        request.request_id);
  return absl::OkStatus();
}

}  // namespace

absl::Status Scheduler::Ask(StreamId id, RowRequest request) {
  const size_t rows = request.rows.size();
  if (rows == 0 || rows != request.samples.size() ||
      (!request.supplied.empty() && rows != request.supplied.size()))
    return InvalidArgument("request {}: {} rows and {} samples, {} supplied",
                           request.request_id, rows, request.samples.size(),
                           request.supplied.size());
  bool ahead = false;
  const MonotonicTime now = state_->clock.Now();
  {
    MutexLock lock(&state_->mu);
    state_->NoteWaits(now);
    const auto it = state_->streams.find(id);
    if (it == state_->streams.end()) return NotFound("the stream is closed");
    StreamState& stream = *it->second;
    ahead = stream.ahead;
    if (request.memory != nullptr)
      RETURN_IF_ERROR(CheckMemory(request, *stream.work));
    if (stream.rows_queued + rows > state_->options.max_rows_per_stream)
      return ResourceExhausted(
          "request {} of {} rows: {} rows wait already, the limit is {} a "
          "stream",
          request.request_id, rows, stream.rows_queued,
          state_->options.max_rows_per_stream);
    if (state_->rows_queued + rows > state_->options.max_rows_total)
      return ResourceExhausted(
          "request {} of {} rows: {} rows wait at this worker, the limit is {}",
          request.request_id, rows, state_->rows_queued,
          state_->options.max_rows_total);
    RETURN_IF_ERROR(
        stream.groups.Add(std::move(request), state_->next_arrival++, now));
    state_->AddQueued(stream, static_cast<ptrdiff_t>(rows));
    state_->NoteOwing();
    state_->Requeue(stream);
  }
  if (ahead)
    state_->reading.Notify();
  else
    state_->wake->Notify();
  return absl::OkStatus();
}

void Scheduler::Cancel(StreamId id, uint64_t request_id) {
  // Destroyed without the lock, because it may hold a lease or a stage.
  std::optional<StreamGroups::Withdrawn> withdrawn;
  MutexLock lock(&state_->mu);
  const auto it = state_->streams.find(id);
  if (it == state_->streams.end()) return;
  StreamState& stream = *it->second;
  withdrawn = stream.groups.Withdraw(request_id);
  if (!withdrawn.has_value()) return;
  state_->progress.NotifyAll();
  for (const auto& group : withdrawn->groups) state_->Drop(stream, *group);
  if (stream.ahead) state_->reading.Notify();
  if (withdrawn->request.has_value())
    state_->AddQueued(stream,
                      -static_cast<ptrdiff_t>(withdrawn->request->left()));
  state_->NoteOwing();
  state_->Requeue(stream);
}

void Scheduler::CloseStream(StreamId id) {
  std::unique_ptr<StreamState> stream;  // destroyed without the lock
  const absl::Cleanup unshare = [&stream] {
    if (stream != nullptr && stream->shared != nullptr)
      stream->shared->RemoveStream();
  };
  MutexLock lock(&state_->mu);
  state_->progress.NotifyAll();
  const auto it = state_->streams.find(id);
  if (it == state_->streams.end()) return;
  stream = std::move(it->second);
  state_->streams.erase(it);
  for (auto& [place, group] : stream->groups) state_->Drop(*stream, *group);
  state_->AddQueued(*stream, -static_cast<ptrdiff_t>(stream->rows_queued));
  state_->NoteOwing();
  if (stream->ahead) {
    state_->read_ahead.Close(stream.get());
    state_->reading.Notify();
  }
  Job& job = *stream->job;
  job.queue.Remove(stream.get());
  job.streams.erase(id);
  if (job.streams.empty()) state_->jobs.erase(stream->work->job_key());
}

bool Scheduler::RunOne(ThreadState* state) {
  State::Task task;
  while (true) {
    bool begun = false, more = false, wake_reader = false;
    const MonotonicTime now = state_->clock.Now();
    {
      MutexLock lock(&state_->mu);
      state_->NoteWaits(now);
      begun = state_->Begin(&task);
      more = begun && state_->rows_queued > 0;
      wake_reader = state_->ReaderWanted();
    }
    if (wake_reader) state_->reading.Notify();
    if (!begun) return false;
    if (more) state_->wake->Notify();
    if (task.group != nullptr) break;
    if (task.finishes != nullptr)
      State::Finish(state_, std::exchange(task.finishes, nullptr));
    else
      State::Open(*state_, std::exchange(task.opens, {}));
  }
  const MonotonicTime start = state_->clock.Now();
  const StageTimes before = OwnStages();
  std::optional<State::Computed> computed =
      State::Compute(state_, &task, state);
  if (!computed.has_value()) return true;
  const StageTimes after = OwnStages();
  const auto spent_in = [&](Stage stage) {
    return after.of(stage).busy_ns - before.of(stage).busy_ns;
  };
  computed->read_ns = spent_in(Stage::kOpen) + spent_in(Stage::kRead);
  computed->decode_ns = spent_in(Stage::kDecode) + spent_in(Stage::kAugment);
  State::EndTask(state_, std::move(task), *computed,
                 state_->clock.Now() - start);
  return true;
}

void Scheduler::State::EndTask(const std::shared_ptr<State>& state, Task task,
                               const Computed& computed, Duration spent) {
  state->counters->busy_ns += static_cast<uint64_t>(spent.count());
  if (computed.copied) state->counters->rows_shared_total += task.rows.size();
  Ended ended;
  {
    MutexLock lock(&state->mu);
    ended = state->End(task, computed, spent);
  }
  if (ended.finishes != nullptr) Finish(state, std::move(ended.finishes));
  if (ended.delivers) Deliver(std::move(task.group));
  task = {};
  const MonotonicTime now = state->clock.Now();
  MutexLock lock(&state->mu);
  state->NoteWaits(now);
  --state->tasks_in_work;
  state->NoteOwing();
  state->progress.NotifyAll();
}

Scheduler::Stats Scheduler::stats() const {
  Stats stats;
  const MonotonicTime now = state_->clock.Now();
  {
    MutexLock lock(&state_->mu);
    state_->NoteWaits(now);
    stats.decode_waits = state_->waits.decode();
    stats.read_waits = state_->waits.read();
    stats.readers = state_->read_threads;
    stats.rows_queued = state_->rows_queued;
    stats.streams = state_->streams.size();
    stats.bytes_ahead = state_->read_ahead.bytes_ahead();
    for (const auto& [id, stream] : state_->streams) {
      stats.rows_ahead += stream->rows_ahead();
      if (stream->ahead)
        stats.read_depth += stream->rows_queued - stream->rows_ready();
      stats.groups_unsent_limit += stream->max_groups;
    }
    for (const auto& [name, job] : state_->jobs)
      stats.jobs.push_back(state_->Told(name, job));
  }
  stats.decode_stages = state_->decode_clocks.Fold();
  stats.read_stages = state_->read_clocks.Fold();
  stats.groups_unsent = state_->counters->groups_unsent;
  stats.groups_sent_total = state_->counters->groups_sent;
  stats.sending_ns_total = state_->counters->sending_ns;
  stats.rows_total = state_->counters->rows_total;
  stats.rows_placed_total = state_->counters->rows_placed_total;
  stats.rows_shared_total = state_->counters->rows_shared_total;
  stats.shared_bytes = state_->shared_rows.bytes();
  stats.row_errors_total = state_->counters->row_errors_total;
  stats.busy_ns_total = state_->counters->busy_ns;
  stats.latency = state_->counters->latency.snapshot();
  return stats;
}

bool Scheduler::WaitIdle(MonotonicTime deadline) {
  MutexLock lock(&state_->mu);
  while (state_->OwesRows())
    if (!state_->progress.WaitUntil(&state_->mu, deadline)) return false;
  return true;
}

}  // namespace leat::worker
