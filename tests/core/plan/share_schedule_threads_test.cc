// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include "core/plan/share_schedule.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

// Each thread asks for more segments than a schedule keeps trees of, in an order
// of its own.
TEST(ShareScheduleThreads, SeeTheSameRows) {
  constexpr uint64_t kSteps = 24;
  std::vector<SharesFrom> shares;
  for (uint64_t step = 0; step < kSteps; step += 2)
    shares.push_back({step, {1, static_cast<double>(step)}});
  const std::vector<std::string> names = {"web", "books"};
  const ShareSchedule schedule =
      ShareSchedule::Create(shares, names, 8).value();
  std::vector<ShareTree::Place> wanted;
  for (uint64_t step = 0; step < kSteps; ++step)
    wanted.push_back(schedule.At(step).Locate(step, 3));
  std::vector<std::vector<ShareTree::Place>> found(4, wanted);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10 * kSteps; ++i) {
        const uint64_t step = i * (2 * t + 1) % kSteps;
        found[t][step] = schedule.At(step).Locate(step, 3);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& places : found) EXPECT_EQ(places, wanted);
}

}  // namespace
}  // namespace leat
