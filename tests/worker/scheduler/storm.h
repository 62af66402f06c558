// SPDX-License-Identifier: Apache-2.0
//
// A storm over a scheduler of real threads: clients request, cancel and close
// at random, and every row comes once, every buffer and every lease back.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/scheduler/fixture.h"

namespace leat::worker {

struct StormOptions {
  int clients = 4, rounds = 30;  // rounds per client, one stream each
  uint64_t requests = 8;         // per stream
  uint32_t most_rows = 50;       // per request
  bool slots = false;            // half of the requests go to shared memory
};

class Storm {
 public:
  using WorkOf = std::function<std::shared_ptr<const RowWork>(int round)>;

  // `device`: finishes its groups meanwhile, some with an error; may be
  // nullptr.
  Storm(const StormOptions& options, WorkOf work, BufferPool* pool,
        std::shared_ptr<WakeSignal> wake, FakeDevice* device = nullptr)
      : options_(options),
        work_(std::move(work)),
        pool_(pool),
        device_(device),
        scheduler_({.threads = 4,
                    .group_bytes = 1000,
                    .max_unsent_groups_per_stream = 2},
                   pool, std::move(wake), Clock::Real()) {}

  void Run() {
    std::atomic<bool> stop{false};
    std::thread finisher;
    if (device_ != nullptr) finisher = std::thread([&] { FinishUntil(stop); });
    std::vector<std::thread> clients;
    for (int c = 0; c < options_.clients; ++c)
      clients.emplace_back([this, c] { RunClient(c); });
    for (std::thread& client : clients) client.join();
    EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime::max()));
    scheduler_.Stop();
    stop = true;
    if (device_ != nullptr) finisher.join();
    EXPECT_GT(begun_, 0);
    EXPECT_EQ(begun_, ended_);
    EXPECT_EQ(pool_->buffers_in_use(), 0u);
    EXPECT_EQ(scheduler_.stats().rows_queued, 0u);
    EXPECT_EQ(scheduler_.stats().streams, 0u);
  }

 private:
  void FinishUntil(const std::atomic<bool>& stop) {
    std::minstd_rand random(99);
    while (!stop || device_->stages > 0)
      if (!device_->FinishOne(random() % 16 == 0 ? Unavailable("lost")
                                                 : absl::OkStatus()))
        std::this_thread::yield();
  }

  void RunClient(int number) {
    std::minstd_rand random(static_cast<uint32_t>(number + 1));
    for (int round = 0; round < options_.rounds; ++round) {
      const auto sink = std::make_shared<FakeSink>();
      sink->KeepNothing();
      const auto id = scheduler_.OpenStream(work_(round), sink);
      ASSERT_TRUE(id.ok()) << id.status();
      size_t rows = 0;
      for (uint64_t request = 0; request < options_.requests; ++request) {
        RowRequest made = NextRequest(request, random);
        rows += made.rows.size();
        ASSERT_TRUE(scheduler_.Ask(*id, std::move(made)).ok());
      }
      if (round % 3 == 1) scheduler_.Cancel(*id, random() % options_.requests);
      if (round % 3 == 0) sink->WaitRows(rows);
      scheduler_.CloseStream(*id);
      if (round % 3 == 0) ExpectEachOnce(sink->Take(), rows);
    }
  }

  RowRequest NextRequest(uint64_t request, std::minstd_rand& random) {
    const auto rows = static_cast<uint32_t>(1 + random() % options_.most_rows);
    RowRequest made = MakeRequest(request, 0, options_.requests - request,
                                  request * 100, rows);
    ++begun_;
    made.lease = MakeLease([this] { ++ended_; });
    if (!options_.slots || random() % 2 == 0) return made;
    std::vector<uint32_t> slots = made.rows;
    auto lease = made.lease;
    return Placed(std::move(made), std::make_shared<FakeMemory>(rows),
                  std::move(slots), std::move(lease));
  }

  static void ExpectEachOnce(const std::vector<FinishedGroup>& groups,
                             size_t rows) {
    std::set<std::pair<uint64_t, uint32_t>> seen;
    for (const FinishedGroup& group : groups)
      for (const uint32_t row : group.rows)
        EXPECT_TRUE(seen.emplace(group.request_id, row).second);
    EXPECT_EQ(seen.size(), rows);
  }

  const StormOptions options_;
  const WorkOf work_;
  BufferPool* const pool_;
  FakeDevice* const device_;
  std::atomic<int> begun_{0}, ended_{0};  // leases
  Scheduler scheduler_;
};

}  // namespace leat::worker
