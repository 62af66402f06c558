// SPDX-License-Identifier: Apache-2.0
//
// The state of endpoints in an EndpointTable: back-off, faults, silence, speed.
#include <algorithm>
#include <cmath>
#include <utility>

#include "client/fetch/endpoint_table.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr uint64_t kColdRows = 32;      // p95 means nothing below
constexpr size_t kMaxNamedWorkers = 8;  // in an error
constexpr double kRowTimeOf = 128;      // averaged over this many recent rows
// Bound on workers that count as stopped at a time: one in this many. If more
// are silent, the cause is common: storage, or a start.
constexpr size_t kStoppedShare = 10;
// How many avoided workers are asked early in `backoff_waiting`.
constexpr size_t kMostEarlyRetries = 32;

}  // namespace

bool IsBug(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown;
}

bool IsTransient(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

Duration EndpointTable::Jittered(Duration duration) const {
  if (!config_.random) return duration;
  return std::chrono::duration_cast<Duration>(duration *
                                              (1 - config_.random() / 2));
}

void EndpointTable::Become(WorkerEndpoint& endpoint, EndpointState state) {
  if (endpoint.silent()) --silent_;
  if (endpoint.state == EndpointState::kStopped) --stopped_;
  endpoint.state = state;
  if (endpoint.silent()) ++silent_;
  if (endpoint.state == EndpointState::kStopped) ++stopped_;
}

void EndpointTable::Trust(WorkerEndpoint& endpoint, MonotonicTime now) {
  if (!endpoint.silent()) return;
  Become(endpoint, endpoint.left_alone(now) ? EndpointState::kBackingOff
                                            : EndpointState::kActive);
}

void EndpointTable::LeaveAlone(WorkerEndpoint& endpoint, Duration duration,
                               MonotonicTime now) {
  endpoint.until = std::max(endpoint.until, now + duration);
  endpoint.early_at = now + Jittered(config_.backoff_waiting);
}

void EndpointTable::Avoid(WorkerEndpoint& endpoint, std::string_view error,
                          bool ended, MonotonicTime now) {
  endpoint.last_error = std::string(error);
  in_flight_.dirty = true;
  const bool was_silent = endpoint.silent();
  if (endpoint.state != EndpointState::kFaulty)
    Become(endpoint, EndpointState::kBackingOff);
  if (!ended && !was_silent && endpoint.left_alone(now)) return;
  // A failure ends a silence, and has a shorter backoff.
  if (was_silent) endpoint.until = now;
  const int shift =
      static_cast<int>(std::min<uint32_t>(endpoint.failures_in_row++, 16));
  LeaveAlone(endpoint,
             Jittered(std::min(config_.backoff_max,
                               config_.backoff_min * (1 << shift))),
             now);
}

void EndpointTable::NoteFault(WorkerEndpoint& endpoint, std::string_view error,
                              MonotonicTime now) {
  endpoint.last_error = std::string(error);
  in_flight_.dirty = true;
  const bool again =
      endpoint.state == EndpointState::kFaulty && endpoint.left_alone(now);
  Become(endpoint, EndpointState::kFaulty);
  if (again) return;  // it belongs to an earlier request
  // It grows unless the worker has worked for as long as the last backoff.
  endpoint.fault_backoff =
      now < endpoint.fault_counts_until
          ? std::min(config_.fault_backoff_max, endpoint.fault_backoff * 2)
          : config_.fault_backoff_min;
  const Duration backoff = Jittered(endpoint.fault_backoff);
  LeaveAlone(endpoint, backoff, now);
  endpoint.fault_counts_until = now + backoff + endpoint.fault_backoff;
}

bool EndpointTable::AllowEarlyRetry(MonotonicTime now) {
  MonotonicTime& due = in_flight_.decided.due;
  // Once per round is enough: the first call allowed all that may be asked.
  if (std::exchange(forgave_, true)) return false;
  if (now >= early_retries_since_ + config_.backoff_waiting) {
    early_retries_since_ = now;
    early_retries_ = 0;
  }
  std::vector<uint16_t> early;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const WorkerEndpoint& endpoint = endpoints_[i];
    const bool may_be_asked = endpoint.present || LastResort(endpoint);
    if (!endpoint.left_alone(now) || !may_be_asked) continue;
    if (endpoint.early_at <= now)
      early.push_back(static_cast<uint16_t>(i));
    else
      due = std::min(due, endpoint.early_at);
  }
  // Asking all of them at once would overload workers that are away together.
  const size_t count =
      std::min(early.size(), kMostEarlyRetries - early_retries_);
  early_retries_ += count;
  if (count < early.size())
    due = std::min(due, early_retries_since_ + config_.backoff_waiting);
  // No worker may be asked early, or enough were: the caller waits until then.
  if (count == 0) return false;
  std::partial_sort(early.begin(),
                    early.begin() + static_cast<ptrdiff_t>(count), early.end(),
                    [&](uint16_t a, uint16_t b) {
                      return endpoints_[a].early_at < endpoints_[b].early_at;
                    });
  for (size_t i = 0; i < count; ++i) {
    WorkerEndpoint& endpoint = endpoints_[early[i]];
    endpoint.until = now;
    if (endpoint.state == EndpointState::kFaulty)
      endpoint.fault_counts_until = now + endpoint.fault_backoff;
  }
  listed_ = false;
  return true;
}

template <typename Predicate>
bool EndpointTable::CanAskOne(MonotonicTime now, Predicate of) {
  List(now);
  const auto can = [&](uint16_t worker) {
    return of(worker) && !endpoints_[worker].left_alone(now);
  };
  return std::any_of(can_.begin(), can_.end(), can) ||
         std::any_of(last_.begin(), last_.end(), can);
}

bool EndpointTable::AnyOther(const Row& row, MonotonicTime now) {
  return CanAskOne(now, [&](uint16_t other) { return !row.AskedOf(other); });
}

bool EndpointTable::AnyBut(uint16_t worker, MonotonicTime now) {
  return CanAskOne(now, [&](uint16_t other) { return other != worker; });
}

bool EndpointTable::AnyIdle(MonotonicTime now) {
  List(now);
  return std::any_of(can_.begin(), can_.end(), [&](uint16_t i) {
    const WorkerEndpoint& endpoint = endpoints_[i];
    return endpoint.rows > 0 &&
           (!endpoint.stream || endpoint.stream->requests.open_rows == 0);
  });
}

bool EndpointTable::AllFaulty() const {
  const auto faulty = [&](uint16_t worker) {
    return worker != Row::kNobody &&
           endpoints_[worker].state == EndpointState::kFaulty;
  };
  return !endpoint_of_.empty() &&
         std::all_of(endpoint_of_.begin(), endpoint_of_.end(), faulty);
}

void EndpointTable::ReduceLimit(const WorkerStream& stream) {
  WorkerEndpoint& endpoint = endpoints_[stream.worker];
  const uint64_t bound = endpoint.supplied_bytes > 0 ? endpoint.supplied_bytes
                                                     : config_.max_stream_bytes;
  endpoint.supplied_bytes =
      std::max<uint64_t>(1, std::min(bound, stream.requests.open_bytes) / 2);
}

void EndpointTable::HeardFrom(WorkerStream& stream, MonotonicTime now) {
  stream.last_heard = now;
  WorkerEndpoint& endpoint = endpoints_[stream.worker];
  if (!stream.retired) Reached(endpoint);
  if (stream.retired || !endpoint.silent()) return;
  endpoint.until = now;
  Trust(endpoint, now);
  endpoint.last_error.clear();
  in_flight_.dirty = true;
}

void EndpointTable::Delivered(WorkerStream& stream, uint64_t rows,
                              uint64_t bytes, size_t group_rows,
                              MonotonicTime now) {
  WorkerEndpoint& endpoint = endpoints_[stream.worker];
  delivered_at_ = now;
  endpoint.rows += rows;
  endpoint.bytes += bytes;
  endpoint.failures_in_row = 0;
  if (!endpoint.left_alone(now))
    Become(endpoint, EndpointState::kActive);
  else if (endpoint.state == EndpointState::kFaulty)
    Become(endpoint, EndpointState::kBackingOff);
  if (endpoint.supplied_bytes > 0) {  // there is room again
    endpoint.supplied_bytes += config_.max_request_bytes;
    if (endpoint.supplied_bytes >= config_.max_stream_bytes)
      endpoint.supplied_bytes = 0;
  }
  // The worker spent the time since the previous group on this one, or the time
  // since it had work.
  const Duration spent = now - std::exchange(stream.requests.busy_since, now);
  // Groups come in bursts, so the time of one says little; the sums over recent
  // rows are used, to which a slow row adds its whole time.
  const auto number = static_cast<double>(group_rows);
  const double kept = std::exp(-number / kRowTimeOf);
  endpoint.spent_ns =
      endpoint.spent_ns * kept + static_cast<double>(spent.count());
  endpoint.spent_rows = endpoint.spent_rows * kept + number;
  endpoint.row_ns = endpoint.spent_ns / endpoint.spent_rows;
}

Duration EndpointTable::HedgeDelay() const {
  if (in_flight_.latency.count() < kColdRows)
    return std::max(config_.hedge_min, config_.hedge_cold);
  const auto late = std::chrono::duration<double, std::nano>(
      config_.hedge_p95_factor *
      static_cast<double>(in_flight_.latency.Quantile(0.95).count()));
  return std::max(config_.hedge_min,
                  Patience(std::chrono::duration_cast<Duration>(late)));
}

Duration EndpointTable::Patience(Duration wanted) const {
  const auto most = std::chrono::duration_cast<Duration>(
      config_.patience_median_factor * in_flight_.latency.Quantile(0.5));
  return std::min(wanted, std::max(config_.hedge_cold, most));
}

Duration EndpointTable::LongSilence(const WorkerEndpoint& endpoint) const {
  // A worker that has not delivered yet may have to load the job.
  if (endpoint.rows == 0 || in_flight_.latency.count() < kColdRows)
    return config_.hedge_cold;
  return std::max(config_.silence_min,
                  Patience(in_flight_.latency.Quantile(0.95)));
}

EndpointTable::Silence EndpointTable::Listen(uint16_t worker, const Row& row,
                                             MonotonicTime now) {
  WorkerEndpoint& endpoint = endpoints_[worker];
  // Its stream has ended: nothing is outstanding.
  if (!endpoint.stream) return Silence::kNone;
  const Duration silence = LongSilence(endpoint);
  const MonotonicTime since =
      std::max(row.asked_at, endpoint.stream->last_heard);
  const bool had_stopped = endpoint.state == EndpointState::kStopped;
  // It has sent something, or was asked, too recently.
  if (since + silence > now) {
    MonotonicTime& due = in_flight_.decided.due;
    if (!had_stopped) due = std::min(due, since + silence);
    return Silence::kNone;
  }
  const size_t most = std::max<size_t>(1, num_named() / kStoppedShare);
  const bool others_deliver = DeliveredSince(since);
  const bool stops = others_deliver && (had_stopped || stopped_ < most);
  const bool too_many_suspects = !endpoint.silent() && silent_ >= most;
  // This was returned before.
  if ((stops ? had_stopped : endpoint.silent()) && endpoint.left_alone(now))
    return Silence::kNone;
  // While no worker delivers, the cause is not this worker.
  if (!others_deliver && too_many_suspects) return Silence::kNone;
  // The only available worker is never suspect.
  if (!AnyBut(worker, now) && !AllowEarlyRetry(now)) return Silence::kNone;
  Become(endpoint, stops || had_stopped ? EndpointState::kStopped
                                        : EndpointState::kSuspect);
  LeaveAlone(endpoint, std::max(config_.backoff_max, silence), now);
  endpoint.last_error = "silent";
  return stops ? Silence::kStopped : Silence::kSuspect;
}

std::string EndpointTable::Describe(const Row& row) const {
  std::string workers;
  size_t named = 0;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const WorkerEndpoint& endpoint = endpoints_[i];
    if (!endpoint.present && endpoint.last_error.empty()) continue;
    if (++named > kMaxNamedWorkers) continue;
    const bool asked = row.AskedOf(static_cast<uint16_t>(i));
    const std::string_view error =
        endpoint.hindrance.empty() ? endpoint.last_error : endpoint.hindrance;
    workers += fmt::format(
        "{}{} at {}: {}", workers.empty() ? "" : "; ", endpoint.ref.name,
        endpoint.ref.address,
        error.empty() ? (asked ? "asked, no answer" : "no error") : error);
  }
  if (named > kMaxNamedWorkers)
    workers += fmt::format("; and {} more", named - kMaxNamedWorkers);
  if (!workers.empty()) return workers;
  return table_ ? "the coordinator knows no ready worker" +
                      (config_.needed.empty() ? "" : " with " + config_.needed)
                : "no assignment has come from the coordinator";
}

std::string EndpointTable::DescribeAll(const Step& step,
                                       MonotonicTime now) const {
  std::string text =
      fmt::format("late after {:.0f} ms; workers:", Milliseconds(HedgeDelay()));
  size_t named = 0;
  for (size_t i = 0; i < endpoints_.size() && named < kMaxNamedWorkers; ++i) {
    const WorkerEndpoint& endpoint = endpoints_[i];
    if (!endpoint.present && !LastResort(endpoint)) continue;
    ++named;
    size_t asked = 0;
    for (const Row& row : step.rows)
      if (!row.settled() && row.AskedOf(static_cast<uint16_t>(i))) ++asked;
    text += fmt::format(" {}: asked for {}", endpoint.ref.name, asked);
    if (!endpoint.present) text += ", not in the assignment";
    if (endpoint.stream)
      text += fmt::format(", owes {}", endpoint.stream->requests.open_rows);
    if (endpoint.reached())
      text += fmt::format(", heard {:.0f} ms ago",
                          Milliseconds(now - endpoint.stream->last_heard));
    if (endpoint.left_alone(now))
      text += fmt::format(", left alone for {:.0f} ms more",
                          Milliseconds(endpoint.until - now));
    if (endpoint.state == EndpointState::kStopped)
      text += ", taken to have stopped";
    if (!endpoint.hindrance.empty())
      text += ", " + endpoint.hindrance;
    else if (!endpoint.last_error.empty())
      text += ", " + endpoint.last_error;
    text += ';';
  }
  return text;
}

}  // namespace leat::client
