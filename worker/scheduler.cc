// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/mutex.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// Counters that outlive streams and scheduler: the last touch of a buffer may
// be gRPC's.
struct SharedCounters {
  std::atomic<uint64_t> rows_total{0}, row_errors_total{0}, busy_ns{0};
  Histogram latency;
};

// A group being computed, then lent. Dropping it gives its buffer back.
struct Group {
  Group(const Clock& c, std::shared_ptr<SharedCounters> s,
        std::shared_ptr<std::atomic<uint32_t>> h)
      : clock(c), counters(std::move(s)), held(std::move(h)) {}
  ~Group() {
    if (sent) counters->latency.Add(clock.Now() - asked_at, rows.size());
    held->fetch_sub(1);  // before the buffer's release, which wakes a thread
  }

  // Constant once opened.
  const Clock& clock;
  const std::shared_ptr<SharedCounters> counters;
  const std::shared_ptr<std::atomic<uint32_t>> held;  // the stream's groups
  uint64_t stream = 0, ask_id = 0, group_id = 0, epoch = 0, step = 0;
  MonotonicTime asked_at;
  std::vector<uint32_t> rows;
  std::vector<uint64_t> samples;
  PooledBuffer buffer;
  // Guarded by the scheduler's lock until complete.
  size_t begun = 0;
  size_t done = 0;
  bool dropped = false;
  bool sent = false;  // handed to its sink
  size_t failed_at = 0;
  absl::Status status;
};

// Where an ask stands in its job: epoch, then step, then arrival.
using Position = std::tuple<uint64_t, uint64_t, uint64_t>;

struct PendingAsk {
  RowAsk ask;
  MonotonicTime asked_at;
  size_t next = 0;  // rows before it are in groups
};

struct Job;

struct StreamState {
  uint64_t id = 0;
  Job* job = nullptr;
  std::shared_ptr<const RowWork> work;
  std::shared_ptr<GroupSink> sink;
  size_t row_bytes = 0;
  size_t rows_per_group = 1;
  std::map<Position, PendingAsk> asks;                // with rows to group
  std::map<Position, std::shared_ptr<Group>> open;    // with rows to begin
  absl::flat_hash_map<uint64_t, Position> positions;  // by ask_id
  std::shared_ptr<std::atomic<uint32_t>> held =
      std::make_shared<std::atomic<uint32_t>>(0);
  uint64_t next_group_id = 1;
  size_t rows_queued = 0;
  double vtime = 0;
  bool eligible = false;  // when last looked at
};

struct Job {
  double vtime = 0;
  double floor = 0;        // virtual time of the last stream chosen
  double mean_ns = 500e3;  // a row, moving average
  bool eligible = false;
  std::map<uint64_t, StreamState*> streams;
};

}  // namespace

struct Scheduler::State {
  State(SchedulerOptions o, BufferPool* p, std::shared_ptr<WakeSignal> w,
        const Clock& c)
      : options(std::move(o)), pool(p), wake(std::move(w)), clock(c) {}

  struct Task {
    std::shared_ptr<Group> group;
    std::shared_ptr<const RowWork> work;
    std::shared_ptr<GroupSink> sink;
    size_t index = 0;
    double charged_ns = 0;
  };

  // What may be begun of a stream now.
  enum class Ready { kNothing, kOpenGroup, kNewGroup };
  Ready Look(const StreamState& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  static std::pair<uint64_t, uint64_t> StepOf(const StreamState& stream,
                                              Ready ready);
  StreamState* Choose(Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  StreamState* ChooseIn(Job& job, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool MayYieldTo(const StreamState& stream, Ready stream_ready,
                  const StreamState& other, Ready other_ready) const;
  bool OpenGroup(StreamState& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Begin(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True: the group is complete and wanted.
  bool End(const Task& task, const absl::Status& status, Duration spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Hands a complete group to its sink.
  void Deliver(Task task) const;
  void DropOpen(StreamState& stream, const Position& position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  static absl::Status Compute(const Task& task, ThreadState* state);

  const SchedulerOptions options;
  BufferPool* const pool;
  const std::shared_ptr<WakeSignal> wake;
  const Clock& clock;
  const std::shared_ptr<SharedCounters> counters =
      std::make_shared<SharedCounters>();
  std::atomic<bool> stopping{false};

  mutable Mutex mu;
  CondVar progress;  // a row has ended
  std::map<std::string, Job> jobs ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<uint64_t, std::unique_ptr<StreamState>> streams
      ABSL_GUARDED_BY(mu);
  double floor ABSL_GUARDED_BY(mu) = 0;
  uint64_t next_stream ABSL_GUARDED_BY(mu) = 1;
  uint64_t next_arrival ABSL_GUARDED_BY(mu) = 1;
  size_t rows_queued ABSL_GUARDED_BY(mu) = 0;
  size_t rows_in_work ABSL_GUARDED_BY(mu) = 0;
};

Scheduler::State::Ready Scheduler::State::Look(
    const StreamState& stream) const {
  const bool open = !stream.open.empty();
  if (stream.asks.empty()) return open ? Ready::kOpenGroup : Ready::kNothing;
  // A group in work that is needed no later goes before a new one.
  if (open && stream.open.begin()->first <= stream.asks.begin()->first)
    return Ready::kOpenGroup;
  const uint32_t held = stream.held->load();
  const PendingAsk& ask = stream.asks.begin()->second;
  const size_t rows =
      std::min(stream.rows_per_group, ask.ask.rows.size() - ask.next);
  const size_t reserve = held == 0 ? 0 : pool->limit_bytes() / 4;
  if (held < options.max_unsent_groups_per_stream &&
      pool->CanAcquire(rows * stream.row_bytes, reserve))
    return Ready::kNewGroup;
  return open ? Ready::kOpenGroup : Ready::kNothing;
}

std::pair<uint64_t, uint64_t> Scheduler::State::StepOf(
    const StreamState& stream, Ready ready) {
  const Position& position = ready == Ready::kOpenGroup
                                 ? stream.open.begin()->first
                                 : stream.asks.begin()->first;
  return {std::get<0>(position), std::get<1>(position)};
}

// Whether `other`'s step is earlier than `stream`'s, by no more than a cohort.
bool Scheduler::State::MayYieldTo(const StreamState& stream, Ready stream_ready,
                                  const StreamState& other,
                                  Ready other_ready) const {
  const auto mine = StepOf(stream, stream_ready);
  const auto theirs = StepOf(other, other_ready);
  if (theirs >= mine) return false;
  const auto linear = [&](const std::pair<uint64_t, uint64_t>& step) {
    return static_cast<double>(step.first) *
               static_cast<double>(stream.work->steps_per_epoch()) +
           static_cast<double>(step.second);
  };
  return linear(mine) - linear(theirs) <=
         static_cast<double>(options.cohort_steps);
}

StreamState* Scheduler::State::ChooseIn(Job& job, Ready* ready) {
  StreamState* fair = nullptr;
  std::vector<std::pair<StreamState*, Ready>> candidates;
  for (const auto& [id, stream] : job.streams) {
    const Ready now = Look(*stream);
    if (now != Ready::kNothing) {
      if (!stream->eligible) stream->vtime = std::max(stream->vtime, job.floor);
      candidates.emplace_back(stream, now);
      if (fair == nullptr || stream->vtime < fair->vtime) {
        fair = stream;
        *ready = now;
      }
    }
    stream->eligible = now != Ready::kNothing;
  }
  if (fair == nullptr) return nullptr;
  job.floor = std::max(job.floor, fair->vtime);
  StreamState* chosen = fair;
  const Ready fair_ready = *ready;
  for (const auto& [stream, now] : candidates) {
    if (!MayYieldTo(*fair, fair_ready, *stream, now)) continue;
    const auto step = StepOf(*stream, now), best = StepOf(*chosen, *ready);
    if (step > best || (step == best && stream->vtime >= chosen->vtime))
      continue;
    chosen = stream;
    *ready = now;
  }
  return chosen;
}

StreamState* Scheduler::State::Choose(Ready* ready) {
  StreamState* chosen = nullptr;
  Job* from = nullptr;
  for (auto& [key, job] : jobs) {
    Ready now = Ready::kNothing;
    StreamState* const stream = ChooseIn(job, &now);
    if (stream != nullptr && !job.eligible)
      job.vtime = std::max(job.vtime, floor);
    job.eligible = stream != nullptr;
    if (stream == nullptr || (from != nullptr && job.vtime >= from->vtime))
      continue;
    chosen = stream;
    from = &job;
    *ready = now;
  }
  if (from != nullptr) floor = std::max(floor, from->vtime);
  return chosen;
}

// Takes the next rows of the stream's first ask into a new group.
bool Scheduler::State::OpenGroup(StreamState& stream) {
  const auto it = stream.asks.begin();
  PendingAsk& ask = it->second;
  const size_t rows =
      std::min(stream.rows_per_group, ask.ask.rows.size() - ask.next);
  // Look has checked the reserve.
  std::optional<PooledBuffer> buffer = pool->Acquire(rows * stream.row_bytes);
  if (!buffer) return false;
  stream.held->fetch_add(1);
  auto group = std::make_shared<Group>(clock, counters, stream.held);
  group->stream = stream.id;
  group->ask_id = ask.ask.ask_id;
  group->group_id = stream.next_group_id++;
  group->epoch = ask.ask.epoch;
  group->step = ask.ask.step;
  group->asked_at = ask.asked_at;
  const auto first = static_cast<ptrdiff_t>(ask.next);
  const auto last = first + static_cast<ptrdiff_t>(rows);
  group->rows.assign(ask.ask.rows.begin() + first, ask.ask.rows.begin() + last);
  group->samples.assign(ask.ask.samples.begin() + first,
                        ask.ask.samples.begin() + last);
  group->buffer = *std::move(buffer);
  stream.open.emplace(it->first, std::move(group));
  ask.next += rows;
  if (ask.next == ask.ask.rows.size()) stream.asks.erase(it);
  return true;
}

bool Scheduler::State::Begin(Task* task) {
  Ready ready = Ready::kNothing;
  StreamState* const stream = Choose(&ready);
  if (stream == nullptr) return false;
  if (ready == Ready::kNewGroup && !OpenGroup(*stream)) return false;
  const auto it = stream->open.begin();
  const std::shared_ptr<Group> group = it->second;
  task->group = group;
  task->work = stream->work;
  task->sink = stream->sink;
  task->index = group->begun++;
  task->charged_ns = stream->job->mean_ns;
  stream->vtime += task->charged_ns;
  stream->job->vtime += task->charged_ns;
  --stream->rows_queued;
  --rows_queued;
  ++rows_in_work;
  if (group->begun == group->rows.size()) {
    if (stream->asks.find(it->first) == stream->asks.end())
      stream->positions.erase(group->ask_id);
    stream->open.erase(it);
  }
  return true;
}

bool Scheduler::State::End(const Task& task, const absl::Status& status,
                           Duration spent) {
  Group& group = *task.group;
  ++group.done;
  if (!status.ok() && (group.status.ok() || task.index < group.failed_at)) {
    group.status = status;
    group.failed_at = task.index;
  }
  if (const auto it = streams.find(group.stream); it != streams.end()) {
    const double ns = static_cast<double>(spent.count());
    Job& job = *it->second->job;
    it->second->vtime += ns - task.charged_ns;
    job.vtime += ns - task.charged_ns;
    job.mean_ns += (ns - job.mean_ns) / 32;
  }
  if (group.dropped || group.done < group.rows.size()) return false;
  group.sent = true;
  return true;
}

// Forgets an open group's rows that have not begun.
void Scheduler::State::DropOpen(StreamState& stream, const Position& position) {
  const auto it = stream.open.find(position);
  if (it == stream.open.end()) return;
  const size_t left = it->second->rows.size() - it->second->begun;
  stream.rows_queued -= left;
  rows_queued -= left;
  it->second->dropped = true;
  stream.open.erase(it);
}

absl::Status Scheduler::State::Compute(const Task& task, ThreadState* state) {
  const std::span<const size_t> field_bytes = task.work->field_bytes();
  const size_t rows = task.group->rows.size();
  std::vector<std::span<std::byte>> outputs;
  outputs.reserve(field_bytes.size());
  size_t offset = 0;
  for (const size_t bytes : field_bytes) {
    outputs.push_back(
        task.group->buffer.bytes().subspan(offset + task.index * bytes, bytes));
    offset += rows * bytes;
  }
  return task.work->Compute(task.group->epoch, task.group->samples[task.index],
                            state, outputs);
}

void Scheduler::State::Deliver(Task task) const {
  const Group& group = *task.group;
  FinishedGroup result{.ask_id = group.ask_id,
                       .group_id = group.group_id,
                       .rows = group.rows,
                       .status = group.status,
                       .payload = {},
                       .owner = nullptr};
  if (group.status.ok()) {
    counters->rows_total += group.rows.size();
    result.payload = group.buffer.bytes();
    result.owner = std::move(task.group);
  } else {
    counters->row_errors_total += group.rows.size();
  }
  task.sink->OnGroup(std::move(result));
}

Scheduler::Scheduler(SchedulerOptions options, BufferPool* pool,
                     std::shared_ptr<WakeSignal> wake, const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), pool, std::move(wake),
                                     clock)) {
  for (int i = 0; i < state_->options.threads; ++i)
    threads_.emplace_back([this, i] {
      pthread_setname_np(pthread_self(), fmt::format("decode-{}", i).c_str());
      std::unique_ptr<ThreadState> state;
      if (state_->options.make_thread_state)
        state = state_->options.make_thread_state();
      while (!state_->stopping.load()) {
        const uint32_t seen = state_->wake->Prepare();
        if (!state_->stopping.load() && !RunOne(state.get()))
          state_->wake->Wait(seen);
      }
    });
}

Scheduler::~Scheduler() { Stop(); }

void Scheduler::Stop() {
  state_->stopping = true;
  state_->wake->NotifyAll();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
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
      state_->options.max_rows_per_group);
  stream->work = std::move(work);
  stream->sink = std::move(sink);
  MutexLock lock(&state_->mu);
  if (state_->streams.size() >= state_->options.max_streams)
    return ResourceExhausted("{} streams are open: the limit",
                             state_->options.max_streams);
  const StreamId id = stream->id = state_->next_stream++;
  Job& job = state_->jobs[stream->work->job_key()];
  stream->job = &job;
  job.streams.emplace(id, stream.get());
  state_->streams.emplace(id, std::move(stream));
  return id;
}

absl::Status Scheduler::Ask(StreamId id, RowAsk ask) {
  const size_t rows = ask.rows.size();
  if (rows == 0 || rows != ask.samples.size())
    return InvalidArgument("ask {}: {} rows and {} samples", ask.ask_id, rows,
                           ask.samples.size());
  {
    MutexLock lock(&state_->mu);
    const auto it = state_->streams.find(id);
    if (it == state_->streams.end()) return NotFound("the stream is closed");
    StreamState& stream = *it->second;
    if (stream.rows_queued + rows > state_->options.max_rows_per_stream)
      return ResourceExhausted(
          "ask {} of {} rows: {} rows wait already, the limit is {} a stream",
          ask.ask_id, rows, stream.rows_queued,
          state_->options.max_rows_per_stream);
    if (state_->rows_queued + rows > state_->options.max_rows_total)
      return ResourceExhausted(
          "ask {} of {} rows: {} rows wait at this worker, the limit is {}",
          ask.ask_id, rows, state_->rows_queued,
          state_->options.max_rows_total);
    const Position position{ask.epoch, ask.step, state_->next_arrival++};
    if (!stream.positions.emplace(ask.ask_id, position).second)
      return InvalidArgument("ask {} is asked already", ask.ask_id);
    stream.asks.emplace(position, PendingAsk{.ask = std::move(ask),
                                             .asked_at = state_->clock.Now()});
    stream.rows_queued += rows;
    state_->rows_queued += rows;
  }
  state_->wake->Notify();
  return absl::OkStatus();
}

void Scheduler::Cancel(StreamId id, uint64_t ask_id) {
  MutexLock lock(&state_->mu);
  const auto it = state_->streams.find(id);
  if (it == state_->streams.end()) return;
  StreamState& stream = *it->second;
  const auto found = stream.positions.find(ask_id);
  if (found == stream.positions.end()) return;
  const Position position = found->second;
  state_->progress.NotifyAll();
  stream.positions.erase(found);
  state_->DropOpen(stream, position);
  if (const auto ask = stream.asks.find(position); ask != stream.asks.end()) {
    const size_t left = ask->second.ask.rows.size() - ask->second.next;
    stream.rows_queued -= left;
    state_->rows_queued -= left;
    stream.asks.erase(ask);
  }
}

void Scheduler::CloseStream(StreamId id) {
  std::unique_ptr<StreamState> stream;  // destroyed without the lock
  MutexLock lock(&state_->mu);
  state_->progress.NotifyAll();
  const auto it = state_->streams.find(id);
  if (it == state_->streams.end()) return;
  stream = std::move(it->second);
  state_->streams.erase(it);
  state_->rows_queued -= stream->rows_queued;
  for (auto& [position, group] : stream->open) group->dropped = true;
  Job& job = *stream->job;
  job.streams.erase(id);
  if (job.streams.empty()) state_->jobs.erase(stream->work->job_key());
}

bool Scheduler::RunOne(ThreadState* state) {
  State::Task task;
  bool more = false;
  {
    MutexLock lock(&state_->mu);
    if (!state_->Begin(&task)) return false;
    more = state_->rows_queued > 0;
  }
  if (more) state_->wake->Notify();
  const MonotonicTime start = state_->clock.Now();
  const absl::Status status = State::Compute(task, state);
  const Duration spent = state_->clock.Now() - start;
  state_->counters->busy_ns += static_cast<uint64_t>(spent.count());
  bool finished = false;
  {
    MutexLock lock(&state_->mu);
    finished = state_->End(task, status, spent);
  }
  if (finished) state_->Deliver(std::move(task));
  MutexLock lock(&state_->mu);
  --state_->rows_in_work;
  state_->progress.NotifyAll();
  return true;
}

Scheduler::Stats Scheduler::stats() const {
  Stats stats;
  {
    MutexLock lock(&state_->mu);
    stats.rows_queued = state_->rows_queued;
    stats.streams = state_->streams.size();
  }
  stats.rows_total = state_->counters->rows_total;
  stats.row_errors_total = state_->counters->row_errors_total;
  stats.busy_ns_total = state_->counters->busy_ns;
  stats.latency = state_->counters->latency.snapshot();
  return stats;
}

int Scheduler::threads() const { return state_->options.threads; }

bool Scheduler::WaitIdle(MonotonicTime deadline) {
  MutexLock lock(&state_->mu);
  while (state_->rows_queued > 0 || state_->rows_in_work > 0)
    if (!state_->progress.WaitUntil(&state_->mu, deadline)) return false;
  return true;
}

}  // namespace leat::worker
