// SPDX-License-Identifier: Apache-2.0
#include "worker/source/shard_cache.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

struct FakeShard {
  uint64_t bytes() const { return 1; }
};
using Shards = ShardCache<FakeShard>;

// Opens once for all that come while it is at it.
class ShardCacheTest : public testing::Test {
 protected:
  // Who wants the shard while it is being opened; what each of them gets.
  std::vector<absl::Status> Together(int threads, const absl::Status& status) {
    std::vector<absl::Status> got(static_cast<size_t>(threads));
    std::latch opening(1), release(1);
    const auto get = [&](size_t i, bool first) {
      got[i] = shards_
                   .Get(7,
                        [&]() -> absl::StatusOr<Shards::Ptr> {
                          ++opens_;
                          if (first) opening.count_down();
                          release.wait();
                          if (!status.ok()) return status;
                          return std::make_shared<const FakeShard>();
                        })
                   .status();
    };
    std::thread one([&] { get(0, true); });
    opening.wait();
    std::atomic<int> coming{0};
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i)
      others.emplace_back([&, i] {
        ++coming;
        get(static_cast<size_t>(i), false);
      });
    while (coming < threads - 1) std::this_thread::yield();
    release.count_down();
    one.join();
    for (std::thread& other : others) other.join();
    return got;
  }

  Shards shards_{10, 10};
  std::atomic<int> opens_{0};
};

TEST_F(ShardCacheTest, AShardIsOpenedForAllWhoWantIt) {
  for (const absl::Status& status : Together(4, absl::OkStatus()))
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(opens_, 1);
}

// Each of many threads would wait for storage again, one after the other.
TEST_F(ShardCacheTest, AFailureIsEverybodysWhoWaited) {
  for (const absl::Status& status :
       Together(16, absl::UnavailableError("away")))
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // Those that came too late to wait may have tried once more.
  EXPECT_LT(opens_, 16);
  EXPECT_TRUE(shards_
                  .Get(7,
                       []() -> absl::StatusOr<Shards::Ptr> {
                         return std::make_shared<const FakeShard>();
                       })
                  .ok())
      << "a failure is not kept";
}

}  // namespace
}  // namespace leat::worker
