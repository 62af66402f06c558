// SPDX-License-Identifier: Apache-2.0
//
// Simulated workers and a trainer, in steps of 5 ms. Workers count their
// activity with the clocks and the report of real ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/observe/stages.h"
#include "leat/v1/types.pb.h"
#include "worker/session/stage_report.h"

namespace leat::server {

inline constexpr Duration kTick = std::chrono::milliseconds(5);
inline constexpr double kTickS = 0.005;
inline constexpr uint64_t kTickNs = 5'000'000;

// Costs are in seconds per row.
struct Machine {
  size_t threads = 2, readers = 0;
  double read = 0, decode = 0.002, augment = 0, device = 0;
  double sends_per_s = 1e9;
  // `cold_read` is the cost of reading between these.
  double cold_from = 0, cold_until = 0, cold_read = 0;
};

// A worker: its rows are read (ahead, if it has readers), decoded, computed on
// a GPU if it has one, and sent in order.
class SimulatedWorker {
 public:
  explicit SimulatedWorker(const Machine& machine) : machine_(machine) {
    for (size_t i = 0; i < machine.threads; ++i) AddThread(&threads_);
    for (size_t i = 0; i < machine.readers; ++i) AddThread(&readers_);
  }

  void Tick(uint64_t asked, double now) {
    asked_ = asked;
    const double read = now >= machine_.cold_from && now < machine_.cold_until
                            ? machine_.cold_read
                            : machine_.read;
    for (Thread& reader : readers_) {
      if (!reader.plan.empty() && Work(&reader)) ++read_;
      if (reader.plan.empty() && begun_reads_ < asked_ &&
          begun_reads_ < begun_ + kAhead) {
        ++begun_reads_;
        Begin(&reader, {{Stage::kRead, read}});
      }
    }
    if (readers_.empty()) read_ = asked_;
    for (Thread& thread : threads_) {
      if (!thread.plan.empty() && Work(&thread)) ++decoded_;
      if (thread.plan.empty() && begun_ < read_ && begun_ < sent_ + kRoom) {
        ++begun_;
        Begin(&thread, {{Stage::kRead, readers_.empty() ? read : 0},
                        {Stage::kDecode, machine_.decode},
                        {Stage::kAugment, machine_.augment}});
      }
    }
    OnDevice();
    Send();
    NoteWaits();
    clock_.Advance(kTick);
  }

  uint64_t sent() const { return sent_; }

  v1::WorkerStats Report() const {
    worker::Scheduler::Stats stats = waits_;
    for (const Thread& thread : threads_)
      thread.clock->AddTo(&stats.decode_stages);
    for (const Thread& reader : readers_)
      reader.clock->AddTo(&stats.read_stages);
    stats.readers = static_cast<int>(readers_.size());
    stats.streams = 1;
    stats.rows_queued = asked_ - begun_;
    stats.groups_unsent = computed_ - sent_;
    std::vector<worker::GpuStats> gpus;
    if (machine_.device > 0) gpus.push_back({.busy_ns_total = device_ns_});
    v1::WorkerStats report;
    report.set_rows_total(sent_);
    worker::AddStages({.scheduler = stats,
                       .threads = static_cast<int>(threads_.size()),
                       .listing = {},
                       .gpus = gpus},
                      report.mutable_stages());
    return report;
  }

 private:
  static constexpr uint64_t kAhead = 32, kRoom = 48;

  struct Thread {
    std::unique_ptr<StageClock> clock;
    std::deque<std::pair<Stage, double>> plan;
  };

  void AddThread(std::vector<Thread>* to) {
    to->push_back({std::make_unique<StageClock>(clock_), {}});
  }
  static void Begin(Thread* thread,
                    std::initializer_list<std::pair<Stage, double>> plan) {
    for (const auto& each : plan)
      if (each.second > 0) thread->plan.push_back(each);
    if (thread->plan.empty())
      thread->plan.emplace_back(plan.begin()->first, 1e-4);
    thread->clock->Enter(thread->plan.front().first, true);
  }
  // Returns true when its row is done.
  static bool Work(Thread* thread) {
    double left = kTickS;
    while (!thread->plan.empty() && left > 0) {
      const double spent = std::min(left, thread->plan.front().second);
      left -= spent;
      if ((thread->plan.front().second -= spent) > 1e-9) break;
      thread->plan.pop_front();
      thread->clock->Enter(
          thread->plan.empty() ? Stage::kNone : thread->plan.front().first,
          true);
    }
    return thread->plan.empty();
  }
  void OnDevice() {
    if (machine_.device <= 0) {
      computed_ = decoded_;
    } else if (computed_ < decoded_) {
      device_ns_ += kTickNs;
      on_device_ += kTickS;
      while (on_device_ >= machine_.device && computed_ < decoded_) {
        on_device_ -= machine_.device;
        ++computed_;
      }
    }
  }
  void Send() {
    if (sent_ == computed_) return;
    waits_.sending_ns_total += kTickNs;
    to_send_ += machine_.sends_per_s * kTickS;
    const auto most = static_cast<uint64_t>(std::min(to_send_, 1e6));
    sent_ += std::min(computed_ - sent_, most);
    to_send_ = sent_ == computed_ ? 0 : to_send_ - static_cast<double>(most);
  }
  // As the scheduler does.
  void NoteWaits() {
    const auto idle = [](const std::vector<Thread>& threads) {
      return kTickNs * static_cast<uint64_t>(std::count_if(
                           threads.begin(), threads.end(),
                           [](const auto& each) { return each.plan.empty(); }));
    };
    auto& waits = waits_.decode_waits;
    const uint64_t decoders = idle(threads_), readers = idle(readers_);
    if (asked_ == begun_) {
      waits.idle_ns += decoders;
      waits_.read_waits.idle_ns += readers;
      return;
    }
    const bool reading = readers < kTickNs * readers_.size();
    (reading ? waits.input_ns : waits.output_ns) += decoders;
    (begun_reads_ == asked_ ? waits_.read_waits.idle_ns
                            : waits_.read_waits.output_ns) += readers;
  }

  const Machine machine_;
  FakeClock clock_;
  std::vector<Thread> threads_, readers_;
  worker::Scheduler::Stats waits_;
  uint64_t asked_ = 0, begun_reads_ = 0, read_ = 0, begun_ = 0, decoded_ = 0,
           computed_ = 0, sent_ = 0, device_ns_ = 0;
  double on_device_ = 0, to_send_ = 0;
};

struct Training {
  std::vector<Machine> workers;
  double step = 0.001;    // the trainer's time per step
  double first_step = 0;  // additional time for the first step
  double uneven = 0;  // twenty steps take this much longer, then twenty shorter
  double way = 0;     // latency to the workers, and back
  uint64_t share = 8;  // rows per step and worker
  uint64_t window = 4;
  double begins = 10;     // the workers are idle before
  double restart_at = 0;  // worker 0 restarts
};

// The trainer, which takes a step when all its rows are there.
class SimulatedTrainer {
 public:
  explicit SimulatedTrainer(const Training& training)
      : training_(training), waited_for_(training.workers.size()) {}

  // `sent`: by each worker.
  void Tick(std::vector<uint64_t> sent, double now) {
    received_ = std::accumulate(sent.begin(), sent.end(), uint64_t{0});
    sent_.push_back(std::move(sent));
    if (sent_.size() > WayTicks()) sent_.pop_front();
    ns_ += kTickNs;
    if (now < busy_until_) return;
    if (Ready() > 0) {
      busy_until_ = now + training_.step +
                    (steps_ / 20 % 2 == 0 ? 1 : -1) * training_.uneven +
                    (steps_ == 0 ? training_.first_step : 0);
      ++steps_;
      owed_.clear();
      return;
    }
    // When a wait begins it is attributed to the workers that owe rows.
    waited_ns_ += kTickNs;
    if (owed_.empty()) owed_ = Owed();
    double all = 0;
    for (const double owed : owed_) all += owed;
    for (size_t i = 0; i < owed_.size(); ++i)
      waited_for_[i] +=
          static_cast<uint64_t>(static_cast<double>(kTickNs) * owed_[i] / all);
  }
  // Returns the rows requested from each worker so far, as it knows them.
  uint64_t Asked() {
    asked_.push_back(training_.share * (steps_ + training_.window));
    if (asked_.size() > WayTicks()) asked_.pop_front();
    return asked_.size() < WayTicks() ? 0 : asked_.front();
  }

  v1::ConsumerStats Report() const {
    v1::ConsumerStats report;
    // Rows that have arrived, also those of incomplete steps.
    report.set_rows_total(received_);
    v1::StageStats& train = *report.add_stages();
    train.set_stage(v1::STAGE_TRAIN);
    train.set_places(1);
    train.set_items_total(steps_);
    train.set_busy_ns_total(ns_ - waited_ns_);
    train.set_input_ns_total(waited_ns_);
    train.set_queue_depth(Ready());
    train.set_queue_capacity(training_.window);
    for (size_t i = 0; i < waited_for_.size(); ++i) {
      if (waited_for_[i] == 0) continue;
      v1::WaitedFor& waited = *report.add_waited_for();
      waited.set_worker("w" + std::to_string(i));
      waited.set_waited_ns_total(waited_for_[i]);
    }
    return report;
  }

 private:
  size_t WayTicks() const {
    return static_cast<size_t>(training_.way / kTickS) + 1;
  }
  uint64_t Ready() const {
    uint64_t ready = training_.window;
    for (size_t i = 0; i < waited_for_.size(); ++i)
      ready = std::min(
          ready, sent_.front()[i] / training_.share -
                     std::min(sent_.front()[i] / training_.share, steps_));
    return sent_.size() < WayTicks() ? 0 : ready;
  }
  std::vector<double> Owed() const {
    std::vector<double> owed;
    for (const uint64_t sent : sent_.front())
      owed.push_back(
          std::max(0.0, static_cast<double>(training_.share * (steps_ + 1)) -
                            static_cast<double>(sent)));
    return owed;
  }

  const Training training_;
  std::deque<std::vector<uint64_t>> sent_;
  std::deque<uint64_t> asked_;
  uint64_t received_ = 0, steps_ = 0, ns_ = 0, waited_ns_ = 0;
  double busy_until_ = 0;
  std::vector<double> owed_;
  std::vector<uint64_t> waited_for_;
};

}  // namespace leat::server
