// SPDX-License-Identifier: Apache-2.0
//
// Show runs a simulated training against a coordinator, and asks for the
// verdict in each second.
//
// Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/simulated_training.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {

// The verdicts in each second since the job began.
struct Said {
  std::vector<Limit> limits;
  std::vector<std::string> subjects;
  std::vector<double> stalls;  // below 0: unknown

  std::set<Limit> All() const { return {limits.begin(), limits.end()}; }
  // Returns each limit when it changed.
  std::vector<Limit> Changes() const {
    std::vector<Limit> changes;
    for (const Limit limit : limits)
      if (changes.empty() || changes.back() != limit) changes.push_back(limit);
    return changes;
  }
  // Returns the first second from which on it was always known.
  size_t KnownFrom() const {
    size_t known = limits.size();
    while (known > 0 && limits[known - 1] != Limit::kUnknown) --known;
    return known;
  }
};

class Show {
 public:
  explicit Show(const Training& training)
      : training_(training), trainer_(training) {
    for (size_t i = 0; i < training.workers.size(); ++i) {
      workers_.push_back(
          std::make_unique<SimulatedWorker>(training.workers[i]));
      sessions_.push_back(world_.Join("w" + std::to_string(i)));
    }
    job_ = world_.MakeJob(SpecOf("j", "/d"), sessions_[0]);
  }

  Said Run(double seconds_of_job) {
    Said said;
    const double end = training_.begins + seconds_of_job;
    for (double now = 0; now < end; now += kTickS, ++tick_) {
      const bool trains = now >= training_.begins;
      std::vector<uint64_t> sent;
      const uint64_t asked = trains ? trainer_.Asked() : 0;
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (i == 0 && tick_ == Ticks(training_.restart_at) && tick_ > 0)
          Restart();
        workers_[i]->Tick(asked - std::min(asked, before_[i]), now);
        sent.push_back(before_[i] + workers_[i]->sent());
      }
      if (trains) trainer_.Tick(std::move(sent), now);
      if (tick_ % Ticks(0.1) == 0) world_.Advance(milliseconds(100));
      Report(trains);
      if (trains && tick_ % Ticks(1) == 0) Ask(&said);
    }
    return said;
  }

 private:
  static int64_t Ticks(double seconds_) {
    return static_cast<int64_t>(seconds_ / kTickS + 0.5);
  }
  // Reports come about once a second, each at a different time.
  void Report(bool trains) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      if ((tick_ + 37 * static_cast<int64_t>(i)) % 203 != 0) continue;
      const auto stats =
          std::make_shared<const v1::WorkerStats>(workers_[i]->Report());
      EXPECT_TRUE(
          world_->Heartbeat(sessions_[i], {0, stats}, {}, world_.now()).ok());
    }
    if (!trains) return;
    if (consumer_ == 0) consumer_ = world_.Open(*job_, "c");
    if ((tick_ + 50) % 201 != 0) return;
    const auto stats =
        std::make_shared<const v1::ConsumerStats>(trainer_.Report());
    EXPECT_TRUE(
        world_->ReportConsumer(consumer_, {.stats = stats}, world_.now()).ok());
  }
  void Restart() {
    before_[0] += workers_[0]->sent();
    workers_[0] = std::make_unique<SimulatedWorker>(training_.workers[0]);
    world_->CloseWorker(sessions_[0], /*left=*/true, world_.now());
    sessions_[0] = world_.Join("w0");
  }
  void Ask(Said* said) {
    const MonotonicTime from = world_.now().mono - std::chrono::minutes(1);
    WorkerSlots workers = world_->WorkersSince(from);
    const auto view = world_->BottleneckOf("j", &workers, from, world_.now());
    ASSERT_TRUE(view.ok());
    said->limits.push_back(view->found.limit);
    said->subjects.push_back(view->found.subject);
    said->stalls.push_back(view->waiting.value_or(-1));
    // A stall without waits is no reason to change anything.
    const bool felt = view->waiting.value_or(1) >= 0.02;
    if (!felt) {
      EXPECT_THAT(view->found.limit,
                  testing::AnyOf(Limit::kTrainer, Limit::kUnknown));
    }
    EXPECT_FALSE(view->found.summary.empty());
    EXPECT_FALSE(view->found.advice.empty());
  }

  const Training training_;
  World world_;
  SimulatedTrainer trainer_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::array<uint64_t, 8> before_{};  // rows of the previous processes
  std::vector<SessionId> sessions_;
  std::shared_ptr<const JobInfo> job_;
  SessionId consumer_ = 0;
  int64_t tick_ = 0;
};

}  // namespace leat::server
