// SPDX-License-Identifier: Apache-2.0
//
// The known workers, and the choice among them. Their states are in
// client/fetch/endpoint_health.cc.
#include "client/fetch/endpoint_table.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

// How strongly, relative to others, the sample prefers its primary owner: 2/3
// to 4/3.
double Reluctance(uint64_t sample) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const auto place = static_cast<double>((sample * kGoldenRatio) >> 32);
  return (2 + 2 * place * 0x1p-32) / 3;
}

constexpr size_t kMaxEndpoints = 4096;    // then absent ones are forgotten
constexpr size_t kFullEndpoints = 60000;  // then former ones too

std::string KeyOf(const AssignmentTable::Worker& ref) {
  return ref.name + '\0' + ref.address;
}

}  // namespace

EndpointTable::EndpointTable(const FetcherConfig& config, JobShards shards,
                             InFlight* in_flight)
    : config_(config), shards_(std::move(shards)), in_flight_(*in_flight) {}

// Lists the numbers without any reference.
void EndpointTable::FreeUnused() {
  unused_.clear();
  if (endpoints_.size() < kMaxEndpoints) return;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const WorkerEndpoint& endpoint = endpoints_[i];
    const bool known = endpoint.former && endpoints_.size() < kFullEndpoints;
    if (!endpoint.present && !known && !endpoint.stream &&
        endpoint.leased_streams == 0)
      unused_.push_back(static_cast<uint16_t>(i));
  }
}

// Returns the number of the worker, or a new one. Row::kNobody: none is left.
uint16_t EndpointTable::EndpointFor(const AssignmentTable::Worker& ref) {
  ++visited_;
  std::string key = KeyOf(ref);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  uint16_t number = 0;
  if (!unused_.empty()) {
    number = unused_.back();
    unused_.pop_back();
    numbers_.erase(KeyOf(endpoints_[number].ref));
    Become(endpoints_[number], EndpointState::kActive);
    endpoints_[number] = WorkerEndpoint();
  } else {
    if (endpoints_.size() >= Row::kNobody) return Row::kNobody;
    number = static_cast<uint16_t>(endpoints_.size());
    endpoints_.emplace_back();
  }
  endpoints_[number].ref = ref;
  endpoints_[number].who = std::hash<std::string>()(ref.name);
  numbers_.emplace(std::move(key), number);
  return number;
}

// Another process has the name and the address: the state of the previous one
// does not apply to it. An open stream remains the previous one's.
void EndpointTable::Renew(WorkerEndpoint& endpoint,
                          const AssignmentTable::Worker& ref) {
  Become(endpoint, EndpointState::kActive);
  endpoint.ref = ref;
  endpoint.until = endpoint.fault_counts_until = {};
  endpoint.failures_in_row = 0;
  endpoint.last_error.clear();
  endpoint.last_code = absl::StatusCode::kOk;
  endpoint.looked_at = false;
  Reached(endpoint);
}

std::vector<std::shared_ptr<WorkerStream>> EndpointTable::SetTable(
    std::shared_ptr<const AssignmentTable> table) {
  std::vector<std::shared_ptr<WorkerStream>> streams;
  if (table->workers().empty() && num_named() > 0) return streams;
  table_ = std::move(table);
  for (WorkerEndpoint& endpoint : endpoints_)
    endpoint.former = std::exchange(endpoint.present, false);
  // Workers that stay are marked first, so that their numbers are not reused.
  for (const AssignmentTable::Worker& ref : table_->workers())
    if (const auto known = numbers_.find(KeyOf(ref)); known != numbers_.end())
      endpoints_[known->second].present = true;
  FreeUnused();
  endpoint_of_.clear();
  for (const AssignmentTable::Worker& ref : table_->workers()) {
    const uint16_t worker = EndpointFor(ref);
    endpoint_of_.push_back(worker);
    if (worker == Row::kNobody) continue;
    endpoints_[worker].present = true;
    if (endpoints_[worker].ref.public_key != ref.public_key)
      Renew(endpoints_[worker], ref);
  }
  listed_ = false;
  in_flight_.dirty = true;
  for (const WorkerEndpoint& endpoint : endpoints_)
    if (endpoint.former && !endpoint.present && endpoint.stream)
      streams.push_back(endpoint.stream);
  return streams;
}

bool EndpointTable::HasRoom(const WorkerEndpoint& endpoint,
                            MonotonicTime now) const {
  if (endpoint.left_alone(now)) return false;
  if (!endpoint.stream) return true;
  const StreamRequests& requests = endpoint.stream->requests;
  return !endpoint.stream->broken &&
         requests.open_rows < config_.max_stream_rows &&
         requests.open_bytes < config_.max_stream_bytes &&
         (endpoint.supplied_bytes == 0 ||
          requests.open_bytes < endpoint.supplied_bytes);
}

// Returns whether the row is neither requested from the worker already, nor
// failed there.
bool EndpointTable::Takes(uint16_t worker, const Step& step, uint32_t index,
                          bool again) const {
  const Row& row = step.rows[index];
  return !row.AskedOf(worker) && (again || !row.FailedAt(worker));
}

bool EndpointTable::Usable(uint16_t worker, const Step& step, uint32_t index,
                           bool again, MonotonicTime now) const {
  ++visited_;
  if (worker == Row::kNobody) return false;
  const WorkerEndpoint& endpoint = endpoints_[worker];
  return HasRoom(endpoint, now) && Takes(worker, step, index, again) &&
         (!step.rows[index].disputed ||
          step.absences->NotBefore(index, endpoint.who) <= now);
}

bool EndpointTable::LastResort(const WorkerEndpoint& endpoint) const {
  if (endpoint.present) return false;
  return endpoint.former || (endpoint.reached() && !endpoint.stream->broken);
}

void EndpointTable::List(MonotonicTime now) {
  if (std::exchange(listed_, true)) return;
  can_.clear();
  last_.clear();
  for (const uint16_t worker : endpoint_of_)
    if (worker != Row::kNobody && HasRoom(endpoints_[worker], now))
      can_.push_back(worker);
  for (size_t i = 0; i < endpoints_.size(); ++i)
    if (LastResort(endpoints_[i]) && HasRoom(endpoints_[i], now))
      last_.push_back(static_cast<uint16_t>(i));
  visited_ += endpoint_of_.size() + endpoints_.size();
}

// Returns the first worker of the list that takes the row, starting at an index
// that depends on its shard. Workers without room for any row are removed from
// the list, so that a round visits each of them once.
std::optional<uint16_t> EndpointTable::FirstOf(std::vector<uint16_t>* list,
                                               uint32_t shard, const Step& step,
                                               uint32_t index, bool again,
                                               MonotonicTime now) {
  size_t at = list->empty() ? 0 : shard % list->size();
  for (size_t left = list->size(); left > 0 && !list->empty();) {
    if (at >= list->size()) at = 0;
    const uint16_t worker = (*list)[at];
    if (Usable(worker, step, index, again, now)) return worker;
    if (HasRoom(endpoints_[worker], now)) {
      ++at;
      --left;
    } else {
      (*list)[at] = list->back();
      list->pop_back();
    }
  }
  return std::nullopt;
}

std::optional<uint16_t> EndpointTable::Choose(const Step& step, uint32_t index,
                                              MonotonicTime now) {
  if (!table_) return std::nullopt;
  const uint32_t shard = shards_.ShardOf(step.samples[index]);
  for (const bool again : {false, true}) {
    for (const uint16_t owner : table_->owners(shard))
      if (Usable(endpoint_of_[owner], step, index, again, now))
        return Spill(endpoint_of_[owner], shard, step, index, now);
    List(now);
    const auto worker = FirstOf(&can_, shard, step, index, again, now);
    if (worker) return worker;
  }
  // A row whose worker is only missing in the table stays there.
  const Row& row = step.rows[index];
  if (row.num_asked() > 0 && row.again == Row::Again::kNo) return std::nullopt;
  for (const bool again : {false, true}) {
    const auto worker = FirstOf(&last_, shard, step, index, again, now);
    if (worker) return worker;
  }
  return std::nullopt;
}

// Returns how long the worker needs for its outstanding rows and `more_rows`,
// in nanoseconds.
double EndpointTable::Backlog(uint16_t worker, uint32_t more_rows) const {
  const WorkerEndpoint& endpoint = endpoints_[worker];
  const size_t open = endpoint.stream ? endpoint.stream->requests.open_rows : 0;
  return static_cast<double>(open + more_rows) * endpoint.row_ns;
}

// Returns `first`, or the owner that will be done much sooner. Every owner
// gives the same bytes: the choice only affects load and caches. The required
// difference varies between samples but not between consumers: the same samples
// spill first, so that other consumers, and later epochs, find them in the same
// caches.
uint16_t EndpointTable::Spill(uint16_t first, uint32_t shard, const Step& step,
                              uint32_t index, MonotonicTime now) const {
  const double backlog = Backlog(first, 0);
  const double fair_rows =
      static_cast<double>(in_flight_.steps.size() * step.rows.size()) /
      static_cast<double>(endpoint_of_.size());
  const double least =
      std::min(fair_rows * endpoints_[first].row_ns,
               static_cast<double>(config_.spill_least.count()));
  uint16_t best = first;
  double shortest = backlog;
  for (const uint16_t owner : table_->owners(shard)) {
    const uint16_t worker = endpoint_of_[owner];
    if (worker == first || worker == Row::kNobody ||
        endpoints_[worker].row_ns <= 0 ||
        !Usable(worker, step, index, false, now))
      continue;
    const double other = config_.spill_factor *
                             Reluctance(step.samples[index]) *
                             Backlog(worker, config_.spill_rows) +
                         least;
    if (other < shortest) {
      shortest = other;
      best = worker;
    }
  }
  return best;
}

const std::shared_ptr<WorkerStream>& EndpointTable::StreamOf(uint16_t worker,
                                                             MonotonicTime now,
                                                             bool* opened) {
  std::shared_ptr<WorkerStream>& stream = endpoints_[worker].stream;
  if (stream) return stream;
  stream = std::make_shared<WorkerStream>();
  stream->worker = worker;
  stream->requests.last_asked = now;
  idle_check_ = std::min(idle_check_, now + config_.stream_idle);
  if (opened != nullptr) *opened = true;
  return stream;
}

MonotonicTime EndpointTable::NextUsable(MonotonicTime now, bool* full) const {
  MonotonicTime next = MonotonicTime::max();
  for (const WorkerEndpoint& endpoint : endpoints_) {
    if (!endpoint.present && !LastResort(endpoint)) continue;
    if (endpoint.left_alone(now))
      next = std::min(next, endpoint.until);
    else
      *full = true;
  }
  return next;
}

void EndpointTable::GiveUpIdleStreams(MonotonicTime now) {
  MonotonicTime& due = in_flight_.decided.due;
  if (now < idle_check_) {
    due = std::min(due, idle_check_);
    return;
  }
  idle_check_ = MonotonicTime::max();
  for (WorkerEndpoint& endpoint : endpoints_) {
    if (!endpoint.stream) continue;
    WorkerStream& stream = *endpoint.stream;
    // Groups without a request have rows that have arrived from elsewhere.
    const bool busy = !stream.requests.open.empty() ||
                      !stream.sharing.ending.empty() || stream.broken;
    const MonotonicTime idle_at =
        (busy ? now : stream.requests.last_asked) + config_.stream_idle;
    if (idle_at <= now) {
      stream.retired = true;
      stream.broken = true;
      Trust(endpoint, now);
      in_flight_.decided.idle.push_back(
          std::exchange(endpoint.stream, nullptr));
      listed_ = false;
      continue;
    }
    // A single time for all streams, to avoid scanning all of them each time.
    idle_check_ =
        std::min(idle_check_, std::max(idle_at, now + config_.stream_idle / 4));
  }
  due = std::min(due, idle_check_);
}

}  // namespace leat::client
