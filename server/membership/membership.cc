// SPDX-License-Identifier: Apache-2.0
//
// The timeout after a worker's last sign of life is the same for all, so three
// lists in the order of those signs replace a heap: a worker moves to the back
// with each sign, and the one due first is in front.
//
// Example, lost_after 3 s, ten members. At 0 s the coordinator is cut off from
// all of them. At 2.1 s the first one is due; all ten have been silent for more
// than 2 s, so a hold until 5.1 s begins and all ten are spared. At 4 s the
// network is back: the first heartbeat prolongs the hold until 7 s, the other
// ones until 8 s. Then none is due. Had none come back, all ten would be lost
// at 5.1 s.
#include "server/membership/membership.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::server {
namespace {

constexpr Duration kMeasureEvery = std::chrono::seconds(1);
constexpr double kMinWeight = 1.0 / 64, kMaxWeight = 65536;
constexpr double kBucketsPerOctave = 16;
// A member without a sign of life for this share of lost_after is silent.
constexpr double kSilentShare = 2.0 / 3;

double Quantised(double weight) {
  return std::exp2(std::round(4 * std::log2(weight)) / 4);
}

double Threads(const WorkerRegistration& registration) {
  return std::max(1u, registration.threads);
}

Duration SilentAfter(const MembershipConfig& config) {
  return std::chrono::duration_cast<Duration>(kSilentShare * config.lost_after);
}

}  // namespace

// Moves `worker` to the end of `to`; nullptr: to no list.
void Membership::Move(Worker* worker, Queue* to) {
  if (worker->queue_ != nullptr && to != nullptr) {
    to->splice(to->end(), *worker->queue_, worker->place_);
  } else if (worker->queue_ != nullptr) {
    worker->queue_->erase(worker->place_);
  } else if (to != nullptr) {
    worker->place_ = to->insert(to->end(), worker);
  }
  worker->queue_ = to;
}

// Adds `worker` to the counts, or removes it. To be called before and after
// each change of a field that it reads.
void Membership::Count(const Worker& worker, int sign) {
  if (!worker.lost && (!worker.registration->not_confined.empty() ||
                       !worker.registration->insecure_listener.empty() ||
                       !worker.report.not_reloaded.empty()))
    num_open_ += sign;
  if (const auto& term = worker.report.certificate; !worker.lost && term) {
    const WallTime at = term->warn_at();
    if (sign > 0)
      expiry_warnings_.insert(at);
    else
      expiry_warnings_.erase(expiry_warnings_.find(at));
  }
  if (worker.state() == WorkerState::kReady) {
    num_ready_ += sign;
    if (!worker.failures.empty()) num_failing_ += sign;
    if (worker.registration->HasEngines()) num_ready_with_engines_ += sign;
    for (DecoderClass each : worker.registration->decoder_classes) {
      num_ready_of_[each] += sign;
      const Decoders* const own = worker.registration->DecodersOf(each);
      const std::pair key(each, own == nullptr ? Digest{} : own->digest);
      size_t& threads = decoder_threads_[key];
      const size_t own_threads = worker.registration->threads;
      threads = sign > 0 ? threads + own_threads : threads - own_threads;
      if (threads == 0) decoder_threads_.erase(key);
    }
  }
  if (!worker.weighed) return;
  auto& alike = thread_weights_[worker.registration->decoder_classes];
  const double thread = worker.weight / Threads(*worker.registration);
  const int bucket =
      static_cast<int>(std::lround(kBucketsPerOctave * std::log2(thread)));
  size_t& count = alike[bucket];
  count += sign;
  if (count == 0) alike.erase(bucket);
}

SessionId Membership::Register(const WorkerRegistration& registration,
                               SessionId session, bool drained, Now now) {
  const auto [it, added] = workers_.try_emplace(registration.name);
  Worker& worker = it->second;
  SessionId replaced = 0;
  bool weighed = false;
  if (!added) {
    Count(worker, -1);
    HeardOfAgain(&worker, now);
    replaced = worker.session;
    sessions_.erase(replaced);
    const WorkerRegistration& before = *worker.registration;
    weighed = worker.weighed && before.host == registration.host &&
              before.threads == registration.threads &&
              before.decoder_classes == registration.decoder_classes;
  }
  const double weight = weighed ? worker.weight : FirstWeight(registration);
  Move(&worker, nullptr);
  worker = Worker();
  worker.registration =
      std::make_shared<const WorkerRegistration>(registration);
  worker.session = session;
  worker.drained = drained;
  worker.weight = weight;
  worker.weighed = weighed;
  worker.joined_at = worker.last_heartbeat_at = now.wall;
  worker.last_heartbeat = now.mono;
  sessions_[session] = &worker;
  Move(&worker, &connected_);
  Count(worker, +1);
  return replaced;
}

bool Membership::Heartbeat(Worker* worker, WorkerReport report,
                           StorageFailures failures, Now now) {
  Count(*worker, -1);
  HeardOfAgain(worker, now);
  const auto of_same = [](const v1::StorageFailure& a,
                          const v1::StorageFailure& b) {
    return std::ranges::equal(a.fingerprints(), b.fingerprints());
  };
  const bool moves =
      worker->lost || !std::ranges::equal(worker->failures, failures, of_same);
  worker->lost = false;
  worker->report = std::move(report);
  worker->failures = std::move(failures);
  worker->last_heartbeat = now.mono;
  worker->last_heartbeat_at = now.wall;
  Move(worker, &connected_);
  MeasureThread(now);
  const bool reweighed = Reweigh(worker);
  Count(*worker, +1);
  return reweighed || moves;
}

double Membership::FirstWeight(const WorkerRegistration& registration) const {
  const double threads = Threads(registration);
  const auto alike = thread_weights_.find(registration.decoder_classes);
  if (alike == thread_weights_.end() || alike->second.empty()) return threads;
  size_t total = 0;
  for (const auto& [bucket, count] : alike->second) total += count;
  size_t below = 0;
  int median = 0;
  for (const auto& [bucket, count] : alike->second) {
    median = bucket;
    below += count;
    if (2 * below > total) break;
  }
  const double thread = std::exp2(median / kBucketsPerOctave);
  return std::clamp(Quantised(threads * thread), kMinWeight, kMaxWeight);
}

// The median needs all workers, so it is computed at most once a second and not
// per heartbeat, also while no worker has measured its capacity.
void Membership::MeasureThread(Now now) {
  if (now.mono < thread_measured_at_ + kMeasureEvery) return;
  thread_measured_at_ = now.mono;
  std::vector<double> rates;
  for (const auto& [name, worker] : workers_)
    if (!worker.lost && worker.report.capacity_rows_per_s > 0)
      rates.push_back(worker.report.capacity_rows_per_s /
                      Threads(*worker.registration));
  visits_ += workers_.size();
  if (rates.empty()) return;
  const auto middle = rates.begin() + rates.size() / 2;
  std::nth_element(rates.begin(), middle, rates.end());
  thread_rows_per_s_ = *middle;
}

bool Membership::Reweigh(Worker* worker) {
  const double capacity = worker->report.capacity_rows_per_s;
  if (!(capacity > 0) || !std::isfinite(capacity) || thread_rows_per_s_ <= 0)
    return false;
  const double wanted =
      std::clamp(capacity / thread_rows_per_s_, kMinWeight, kMaxWeight);
  const double ratio = wanted / worker->weight;
  const bool first = worker->measured < config_.first_reports;
  const auto& [tolerance, reports] =
      first ? config_.first_deviation : config_.later_deviation;
  if (first) ++worker->measured;
  if (ratio < tolerance && 1 / ratio < tolerance) {
    worker->deviations = 0;
    worker->weighed = true;
    return false;
  }
  if (++worker->deviations < reports) return false;
  worker->deviations = 0;
  worker->weight = Quantised(wanted);
  worker->weighed = true;
  return true;
}

bool Membership::Disconnect(SessionId session, bool left, Now now) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return false;
  Worker& worker = *it->second;
  sessions_.erase(it);
  worker.session = 0;
  if (left) {
    const bool was_member = !worker.lost;
    Count(worker, -1);
    Move(&worker, nullptr);
    workers_.erase(workers_.find(worker.registration->name));
    return was_member;
  }
  worker.disconnected_at = now.mono;
  if (!worker.lost) Move(&worker, &broken_);
  return false;
}

bool Membership::SetDrained(std::string_view name, bool drained) {
  Worker* worker = Find(name);
  if (worker == nullptr || worker->drained == drained) return false;
  Count(*worker, -1);
  worker->drained = drained;
  Count(*worker, +1);
  return true;
}

bool Membership::SetRetiring(std::string_view name, bool retiring) {
  Worker* worker = Find(name);
  if (worker == nullptr || worker->retiring == retiring) return false;
  Count(*worker, -1);
  worker->retiring = retiring;
  Count(*worker, +1);
  return true;
}

// Returns when the front of a list of members is due. max(): the list is empty.
MonotonicTime Membership::DueAt(const Queue& queue) const {
  if (queue.empty()) return MonotonicTime::max();
  if (&queue == &connected_)
    return queue.front()->last_heartbeat + config_.lost_after;
  return queue.front()->disconnected_at +
         std::min(config_.reconnect_grace, config_.lost_after);
}

MonotonicTime Membership::NextLoss() const {
  const MonotonicTime due = std::min(DueAt(connected_), DueAt(broken_));
  return hold_until_ ? std::max(due, *hold_until_) : due;
}

// Returns the silent members that no hold has spared yet.
std::vector<Membership::Worker*> Membership::Silent(Now now) const {
  std::vector<Worker*> silent;
  for (Worker* worker : broken_)
    if (!worker->spared_) silent.push_back(worker);
  for (Worker* worker : connected_) {
    if (now.mono < worker->last_heartbeat + SilentAfter(config_)) break;
    if (!worker->spared_) silent.push_back(worker);
  }
  visits_ += silent.size();
  return silent;
}

void Membership::HeardOfAgain(Worker* worker, Now now) {
  if (!std::exchange(worker->spared_, false) || !hold_until_) return;
  hold_until_ = std::min(now.mono + config_.lost_after,
                         hold_began_ + config_.max_holds * config_.lost_after);
}

Membership::Expired Membership::Expire(Now now) {
  Expired expired;
  // A hold that ended with no member to lose is over.
  if (hold_until_ &&
      std::min(DueAt(connected_), DueAt(broken_)) > *hold_until_ &&
      now.mono >= *hold_until_)
    hold_until_.reset();
  const MonotonicTime due = NextLoss();
  if (now.mono >= due) {
    const bool spared = hold_until_.has_value();
    hold_until_.reset();
    const auto members =
        static_cast<double>(connected_.size() + broken_.size());
    const std::vector<Worker*> silent = Silent(now);
    const Duration late = now.mono - due;
    const bool deaf = !silent.empty() && late >= config_.lost_after / 8;
    const bool many = silent.size() >= 2 && static_cast<double>(silent.size()) >
                                                config_.hold_share * members;
    if (!spared && (deaf || many)) {
      for (Worker* worker : silent) worker->spared_ = true;
      hold_began_ = now.mono;
      hold_until_ = now.mono + (many ? config_.lost_after
                                     : std::clamp(late, config_.lost_after / 2,
                                                  config_.lost_after));
      expired.held = silent.size();
    }
  }
  for (Queue* queue : {&connected_, &broken_})
    while (!hold_until_ && now.mono >= DueAt(*queue)) {
      Worker* worker = queue->front();
      ++visits_;
      Count(*worker, -1);
      worker->lost = true;
      worker->lost_at = now.mono;
      worker->spared_ = false;
      Count(*worker, +1);
      Move(worker, &lost_);
      expired.lost.push_back(worker->registration->name);
    }
  while (!lost_.empty() &&
         now.mono >= lost_.front()->lost_at + config_.forget_after) {
    Worker* worker = lost_.front();
    ++visits_;
    if (worker->session != 0) {  // it may still come back on its stream
      worker->lost_at = now.mono;
      Move(worker, &lost_);
      continue;
    }
    Count(*worker, -1);
    Move(worker, nullptr);
    workers_.erase(workers_.find(worker->registration->name));
  }
  return expired;
}

MonotonicTime Membership::NextDeadline() const {
  MonotonicTime next = NextLoss();
  if (!lost_.empty())
    next = std::min(next, lost_.front()->lost_at + config_.forget_after);
  return next;
}

Membership::Worker* Membership::Find(std::string_view name) {
  const auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : &it->second;
}

Membership::Worker* Membership::Find(SessionId session) {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : it->second;
}

size_t Membership::num_ready(DecoderClass decoder_class) const {
  const auto it = num_ready_of_.find(decoder_class);
  return it == num_ready_of_.end() ? 0 : it->second;
}

}  // namespace leat::server
