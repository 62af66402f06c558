// SPDX-License-Identifier: Apache-2.0
#include "server/membership.h"

#include <algorithm>
#include <cmath>

namespace leat::server {
namespace {

constexpr Duration kMeasureEvery = std::chrono::seconds(1);
constexpr double kMinWeight = 1.0 / 64, kMaxWeight = 65536;

double Quantised(double weight) {
  return std::exp2(std::round(4 * std::log2(weight)) / 4);
}

}  // namespace

bool Membership::Worker::Has(DecoderClass decoder_class) const {
  const auto& classes = registration.decoder_classes;
  return std::find(classes.begin(), classes.end(), decoder_class) !=
         classes.end();
}

SessionId Membership::Register(const WorkerRegistration& registration,
                               SessionId session, bool drained, Now now) {
  Worker& worker = workers_[registration.name];
  const SessionId replaced = worker.session;
  if (replaced != 0) sessions_.erase(replaced);
  const bool weighed =
      worker.weighed && worker.registration.host == registration.host &&
      worker.registration.threads == registration.threads &&
      worker.registration.decoder_classes == registration.decoder_classes;
  const double weight = weighed ? worker.weight : FirstWeight(registration);
  worker = Worker();
  worker.registration = registration;
  worker.session = session;
  worker.drained = drained;
  worker.weight = weight;
  worker.weighed = weighed;
  worker.joined_at = worker.last_heartbeat_at = now.wall;
  worker.last_heartbeat = now.mono;
  sessions_[session] = registration.name;
  return replaced;
}

bool Membership::Heartbeat(Worker* worker, const WorkerStats& stats, Now now) {
  const bool was_lost = worker->lost;
  worker->lost = false;
  worker->stats = stats;
  worker->last_heartbeat = now.mono;
  worker->last_heartbeat_at = now.wall;
  MeasureThread(now);
  return Reweigh(worker) || was_lost;
}

double Membership::FirstWeight(const WorkerRegistration& registration) const {
  std::vector<double> alike;  // what a thread counts
  for (const auto& [name, worker] : workers_)
    if (worker.weighed &&
        worker.registration.decoder_classes == registration.decoder_classes)
      alike.push_back(worker.weight /
                      std::max(1u, worker.registration.threads));
  const double threads = std::max(1u, registration.threads);
  if (alike.empty()) return threads;
  const auto middle = alike.begin() + alike.size() / 2;
  std::nth_element(alike.begin(), middle, alike.end());
  return std::clamp(Quantised(threads * *middle), kMinWeight, kMaxWeight);
}

// The median needs all workers: at most once a second, not at each heartbeat.
void Membership::MeasureThread(Now now) {
  if (thread_rows_per_s_ > 0 && now.mono < thread_measured_at_ + kMeasureEvery)
    return;
  std::vector<double> rates;
  for (const auto& [name, worker] : workers_)
    if (!worker.lost && worker.stats.capacity_rows_per_s > 0)
      rates.push_back(worker.stats.capacity_rows_per_s /
                      std::max(1u, worker.registration.threads));
  thread_measured_at_ = now.mono;
  if (rates.empty()) return;
  const auto middle = rates.begin() + rates.size() / 2;
  std::nth_element(rates.begin(), middle, rates.end());
  thread_rows_per_s_ = *middle;
}

bool Membership::Reweigh(Worker* worker) {
  const double capacity = worker->stats.capacity_rows_per_s;
  if (!(capacity > 0) || !std::isfinite(capacity) || thread_rows_per_s_ <= 0)
    return false;
  const double wanted =
      std::clamp(capacity / thread_rows_per_s_, kMinWeight, kMaxWeight);
  const double ratio = wanted / worker->weight;
  if (ratio < config_.weight_tolerance &&
      1 / ratio < config_.weight_tolerance) {
    worker->deviations = 0;
    worker->weighed = true;
    return false;
  }
  if (++worker->deviations < config_.weight_reports) return false;
  worker->deviations = 0;
  worker->weight = Quantised(wanted);
  worker->weighed = true;
  return true;
}

bool Membership::Disconnect(SessionId session, bool left, Now now) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return false;
  const std::string name = it->second;
  sessions_.erase(it);
  Worker& worker = workers_.at(name);
  worker.session = 0;
  if (left) {
    const bool was_member = !worker.lost;
    workers_.erase(name);
    return was_member;
  }
  worker.disconnected_at = now.mono;
  return false;
}

bool Membership::SetDrained(std::string_view name, bool drained) {
  Worker* worker = Find(name);
  if (worker == nullptr || worker->drained == drained) return false;
  worker->drained = drained;
  return true;
}

MonotonicTime Membership::LostAt(const Worker& worker) const {
  const MonotonicTime silent = worker.last_heartbeat + config_.lost_after;
  if (!worker.disconnected_at) return silent;
  return std::min(silent, *worker.disconnected_at + config_.reconnect_grace);
}

std::vector<std::string> Membership::Expire(Now now) {
  std::vector<std::string> lost;
  for (auto it = workers_.begin(); it != workers_.end();) {
    Worker& worker = it->second;
    if (!worker.lost && now.mono >= LostAt(worker)) {
      worker.lost = true;
      worker.lost_at = now.mono;
      lost.push_back(it->first);
    }
    const bool forget = worker.lost && worker.session == 0 &&
                        now.mono >= worker.lost_at + config_.forget_after;
    it = forget ? workers_.erase(it) : std::next(it);
  }
  return lost;
}

MonotonicTime Membership::NextDeadline() const {
  MonotonicTime next = MonotonicTime::max();
  for (const auto& [name, worker] : workers_) {
    if (!worker.lost)
      next = std::min(next, LostAt(worker));
    else if (worker.session == 0)
      next = std::min(next, worker.lost_at + config_.forget_after);
  }
  return next;
}

Membership::Worker* Membership::Find(std::string_view name) {
  const auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : &it->second;
}

Membership::Worker* Membership::Find(SessionId session) {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : Find(it->second);
}

size_t Membership::num_ready() const {
  return std::count_if(workers_.begin(), workers_.end(), [](const auto& entry) {
    return entry.second.state() == WorkerState::kReady;
  });
}

size_t Membership::num_ready(DecoderClass decoder_class) const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [&](const auto& entry) {
                         return entry.second.state() == WorkerState::kReady &&
                                entry.second.Has(decoder_class);
                       });
}

}  // namespace leat::server
