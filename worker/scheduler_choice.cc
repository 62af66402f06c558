// SPDX-License-Identifier: Apache-2.0
//
// Which row is next: start-time fair queueing between jobs and, in a job,
// between streams. Virtual time is the time spent; the floor is that of the
// last one chosen, and who becomes eligible starts no lower.
#include <algorithm>
#include <utility>
#include <vector>

#include "worker/scheduler_state.h"

namespace leat::worker {

Scheduler::State::Ready Scheduler::State::Look(
    const StreamState& stream) const {
  // The threads that read open the groups.
  if (stream.ahead)
    return stream.rows_ready > 0 ? Ready::kOpenGroup : Ready::kNothing;
  return LookAt(stream, stream.open.begin());
}

Scheduler::State::Ready Scheduler::State::LookAt(
    const StreamState& stream, GroupMap::const_iterator next) const {
  const bool open = next != stream.open.end();
  if (stream.asks.empty()) return open ? Ready::kOpenGroup : Ready::kNothing;
  // A group in work that is needed no later goes before a new one.
  if (open && next->first.first <= stream.asks.begin()->first)
    return Ready::kOpenGroup;
  if (MayOpen(stream)) return Ready::kNewGroup;
  return open ? Ready::kOpenGroup : Ready::kNothing;
}

// Whether there is room for a group of the stream's first ask.
bool Scheduler::State::MayOpen(const StreamState& stream) const {
  const uint32_t held = stream.held->load();
  if (stream.refused || held >= stream.max_groups) return false;
  const PendingAsk& ask = stream.asks.begin()->second;
  const size_t rows =
      std::min(stream.rows_per_group, ask.ask.rows.size() - ask.next);
  const size_t reserve = held == 0 ? 0 : pool->limit_bytes() / 4;
  if (ask.ask.memory == nullptr &&
      !pool->CanAcquire(rows * stream.row_bytes, reserve))
    return false;
  const bool on_device =
      ask.ask.memory != nullptr && ask.ask.memory->device() >= 0;
  return !stream.work->staged(on_device) || stream.work->CanBegin();
}

std::pair<uint64_t, uint64_t> Scheduler::State::StepOf(
    const StreamState& stream, Ready ready) {
  const Position& position = ready == Ready::kOpenGroup
                                 ? NextToBegin(stream)->first.first
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

}  // namespace leat::worker
