// SPDX-License-Identifier: Apache-2.0
//
// Tests PoolPolicy in a simulated cluster: a slow engine that kills workers,
// trainers that take what they receive, and noisy figures.
#include "core/cluster/pool_policy.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Simulates a trainer that could take `demand` rows/s, and workers of `rate`
// each.
class Simulation {
 public:
  struct Options {
    double rate = 100;
    seconds start_time{4};  // from the engine's decision until a worker serves
    double noise = 0;       // of rates and waits, in both directions
    bool workers_help = true;
    Duration low_for = kPoolLowFor;
  };

  Simulation(PoolBounds bounds, Options options)
      : bounds_(bounds), options_(options), policy_(options.low_for) {}

  double demand = 0;
  PoolBounds bounds_;
  PoolTarget target;
  int changes = 0, raises = 0;

  size_t serving() const {
    return static_cast<size_t>(
        std::count_if(born_.begin(), born_.end(), [this](const auto& each) {
          return each.second <= now_ && !Drains(each.first);
        }));
  }
  // Returns the fraction of the trainer's time in the last step.
  double waiting() const { return waiting_; }
  seconds elapsed() const {
    return std::chrono::duration_cast<seconds>(now_ - MonotonicTime());
  }

  void Run(Duration time) {
    for (const MonotonicTime end = now_ + time; now_ < end; now_ += seconds(2))
      Step();
  }
  void Kill() { born_.erase(born_.begin()); }
  // True if the engine starts missing workers and ends draining ones.
  bool engine_works = true;

 private:
  bool Drains(const std::string& name) const {
    return std::ranges::binary_search(target.drain, name);
  }

  double Noisy(double value) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(random_ >> 11) / (1ull << 53);
    return value * (1 + options_.noise * (2 * unit - 1));
  }

  void Step() {
    const double made = options_.rate * static_cast<double>(serving());
    const double taken = std::min(demand, made);
    waiting_ = demand > 0 ? 1 - taken / demand : 0;
    waits_[now_] = {taken, waiting_};
    std::vector<PoolWorker> workers;
    for (const auto& [name, born] : born_)
      if (born <= now_) workers.push_back({name, Noisy(options_.rate), 1000});
    const PoolTarget next =
        policy_.Decide(bounds_, workers, Jobs(policy_.LookFrom(now_)), now_);
    if (next.desired != target.desired) {
      ++changes;
      if (next.desired > target.desired) ++raises;
    }
    target = next;
    if (!engine_works) return;
    for (const std::string& victim : target.drain) born_.erase(victim);
    while (born_.size() < target.desired)
      born_[fmt::format("w{:04}", next_++)] = now_ + options_.start_time;
  }

  std::optional<std::vector<PoolJob>> Jobs(MonotonicTime since) {
    if (now_ < since + seconds(6)) return std::nullopt;
    if (demand == 0) return std::vector<PoolJob>();
    PoolJob job{.name = "train"};
    double steps = 0;
    for (auto it = waits_.lower_bound(since); it != waits_.end(); ++it) {
      ++steps;
      job.rows_per_s += it->second.first;
      job.waiting += it->second.second;
    }
    job.rows_per_s = Noisy(job.rows_per_s / steps);
    job.waiting = std::min(1.0, Noisy(job.waiting / steps));
    job.stalls = options_.workers_help && waiting_ > 0.02;
    return std::vector<PoolJob>{job};
  }

  Options options_;
  PoolPolicy policy_;
  MonotonicTime now_{};
  std::map<std::string, MonotonicTime> born_;
  std::map<MonotonicTime, std::pair<double, double>> waits_;
  double waiting_ = 0;
  int next_ = 0;
  uint64_t random_ = 1;
};

TEST(PoolPolicy, WorkersComeWhileTrainersWaitAndThenStay) {
  Simulation cluster({1, 8}, {});
  cluster.demand = 420;
  cluster.Run(minutes(2));
  EXPECT_EQ(cluster.target.desired, 5u) << cluster.target.reason;
  EXPECT_EQ(cluster.serving(), 5u);
  EXPECT_EQ(cluster.waiting(), 0);
  EXPECT_THAT(cluster.target.reason, HasSubstr("job train waits"));
  const int changes = cluster.changes;
  cluster.Run(minutes(120));
  EXPECT_EQ(cluster.changes, changes);
}

TEST(PoolPolicy, TheyGoTenMinutesAfterTrainersWantLess) {
  Simulation cluster({1, 8}, {});
  cluster.demand = 420;
  cluster.Run(minutes(2));
  cluster.demand = 150;
  cluster.Run(minutes(9));
  EXPECT_EQ(cluster.target.desired, 5u);
  cluster.Run(minutes(2));
  EXPECT_EQ(cluster.target.desired, 2u) << cluster.target.reason;
  EXPECT_EQ(cluster.waiting(), 0);
  EXPECT_THAT(cluster.target.reason, HasSubstr("for 10m"));
  cluster.demand = 0;
  cluster.Run(minutes(11));
  EXPECT_EQ(cluster.target.desired, 1u) << "the least that the bounds allow";
}

TEST(PoolPolicy, HowLongTheyStayIsWhatItWasMadeWith) {
  Simulation cluster({1, 8}, {.low_for = seconds(30)});
  cluster.demand = 420;
  cluster.Run(minutes(2));
  EXPECT_EQ(cluster.target.desired, 5u);
  cluster.demand = 150;
  cluster.Run(seconds(28));
  EXPECT_EQ(cluster.target.desired, 5u);
  cluster.Run(minutes(1));
  EXPECT_EQ(cluster.target.desired, 2u) << cluster.target.reason;
  EXPECT_THAT(cluster.target.reason, HasSubstr("for 30s"));
}

TEST(PoolPolicy, NoiseOfATenthMovesNothing) {
  Simulation cluster({1, 20}, {.noise = 0.1});
  cluster.demand = 760;
  cluster.Run(minutes(5));
  EXPECT_EQ(cluster.waiting(), 0);
  const int changes = cluster.changes;
  cluster.Run(minutes(24 * 60));
  EXPECT_LE(cluster.changes - changes, 1);
}

TEST(PoolPolicy, DemandThatComesAndGoesEveryFewMinutesKeepsThePool) {
  Simulation cluster({1, 8}, {});
  cluster.demand = 420;
  cluster.Run(minutes(2));
  const int changes = cluster.changes;
  for (int i = 0; i < 20; ++i) {
    cluster.demand = 50;
    cluster.Run(minutes(4));
    cluster.demand = 420;
    cluster.Run(minutes(4));
  }
  EXPECT_EQ(cluster.changes, changes);
  EXPECT_EQ(cluster.target.desired, 5u);
}

TEST(PoolPolicy, AnEngineThatTakesMinutesIsNotAskedForMoreEachTime) {
  Simulation cluster({1, 100}, {.start_time = seconds(300)});
  cluster.demand = 420;
  cluster.Run(seconds(310));  // the first worker arrives
  cluster.Run(minutes(4));
  EXPECT_EQ(cluster.target.desired, 3u) << "2 × 1 + 1";
  cluster.Run(minutes(30));
  EXPECT_EQ(cluster.target.desired, 5u);
}

TEST(PoolPolicy, AnEngineThatGivesNothingChangesNothing) {
  Simulation cluster({2, 100}, {});
  cluster.engine_works = false;
  cluster.demand = 420;
  cluster.Run(minutes(60));
  EXPECT_EQ(cluster.target.desired, 2u);
  EXPECT_LE(cluster.changes, 1);
}

TEST(PoolPolicy, ALostWorkerIsNotTakenForOneTooMany) {
  Simulation cluster({1, 8}, {});
  cluster.demand = 420;
  cluster.Run(minutes(2));
  cluster.Kill();
  cluster.Run(minutes(1));
  EXPECT_EQ(cluster.serving(), 5u);
  EXPECT_LE(cluster.target.desired, 6u);
}

TEST(PoolPolicy, WhereNobodyIsBusyMoreWorkersAreNotAskedFor) {
  Simulation cluster({1, 8}, {.workers_help = false});
  cluster.demand = 420;
  cluster.Run(minutes(30));
  EXPECT_EQ(cluster.target.desired, 1u);
}

TEST(PoolPolicy, ThereIsNeverMoreThanOneChangeAMinuteButForStalls) {
  Simulation cluster({0, 50}, {.noise = 0.3});
  int seen = 0;
  seconds last{-1000};
  for (int i = 0; i < 4000; ++i) {
    cluster.demand = (i / 400) % 2 == 0 ? 1500 : 200;
    const int changes = cluster.changes, raises = cluster.raises;
    cluster.Run(seconds(2));
    if (cluster.changes == changes) continue;
    if (cluster.raises == raises) {
      EXPECT_GE(cluster.elapsed() - last, seconds(60));
      ++seen;
    }
    last = cluster.elapsed();
  }
  EXPECT_GT(seen, 0);
}

// Makes one decision after another, by hand.
class Decisions : public ::testing::Test {
 protected:
  const PoolTarget& Decide(const std::vector<PoolWorker>& workers,
                           std::vector<PoolJob> jobs = {}) {
    target_ = policy_.Decide(bounds_, workers, std::move(jobs), now_);
    now_ += seconds(2);
    return target_;
  }
  PoolBounds bounds_{0, 10};
  PoolPolicy policy_;
  PoolTarget target_;
  MonotonicTime now_{};
};

TEST_F(Decisions, WorkersThatAreThereAtTheBeginningStay) {
  Decide({});
  EXPECT_EQ(target_.desired, 0u);
  Decide({{"a", 100, 0}});
  Decide({{"a", 100, 0}, {"b", 100, 0}, {"c", 0, 0}});
  EXPECT_EQ(target_.desired, 3u) << target_.reason;
  EXPECT_THAT(target_.drain, IsEmpty());
}

TEST_F(Decisions, BoundsHoldAtOnce) {
  Decide({{"a", 100, 0}});
  bounds_ = {3, 10};
  EXPECT_EQ(Decide({{"a", 100, 0}}).desired, 3u);
  EXPECT_THAT(target_.reason, HasSubstr("3 to 10"));
  bounds_ = {0, 0 + 1};
  EXPECT_EQ(Decide({{"a", 100, 0}}).desired, 1u);
}

TEST_F(Decisions, TheSlowestGoAndOfThoseAlikeTheOneWithLeastInItsCache) {
  const std::vector<PoolWorker> workers = {{"full", 100, 900},
                                           {"empty", 104, 10},
                                           {"slow", 20, 5000},
                                           {"fast", 400, 0}};
  Decide(workers);
  bounds_ = {0, 3};
  EXPECT_THAT(Decide(workers).drain, ElementsAre("slow"));
  bounds_ = {0, 2};
  EXPECT_THAT(Decide(workers).drain, ElementsAre("empty", "slow"));
}

TEST_F(Decisions, WhoWasChosenStaysChosen) {
  Decide({{"a", 100, 0}, {"b", 110, 0}});
  bounds_ = {0, 1};
  EXPECT_THAT(Decide({{"a", 100, 0}, {"b", 110, 0}}).drain, ElementsAre("a"));
  EXPECT_THAT(Decide({{"a", 900, 0}, {"b", 110, 0}}).drain, ElementsAre("a"));
  EXPECT_THAT(Decide({{"b", 110, 0}}).drain, IsEmpty()) << "it has gone";
  bounds_ = {0, 2};
  EXPECT_THAT(Decide({{"a", 900, 0}, {"b", 110, 0}}).drain, IsEmpty());
}

TEST_F(Decisions, AStallOfAJobThatThePoolDoesNotServeIsNone) {
  const std::vector<PoolWorker> one = {{"a", 100, 0}};
  Decide(one);
  for (int i = 0; i < 20; ++i)
    Decide(one, {{.name = "other",
                  .rows_per_s = 50,
                  .waiting = 0.5,
                  .stalls = false,
                  .share = 0}});
  EXPECT_EQ(target_.desired, 1u);
  EXPECT_EQ(target_.demand_rows_per_s, 0);
}

TEST_F(Decisions, WithoutARateThereIsOneWorkerMore) {
  const std::vector<PoolWorker> one = {{"a", 0, 0}};
  Decide(one);
  Decide(one,
         {{.name = "train", .rows_per_s = 50, .waiting = 0.9, .stalls = true}});
  EXPECT_EQ(target_.desired, 2u) << target_.reason;
  EXPECT_EQ(target_.reason,
            "job train waits for 90 % of its time with 1 worker, which has "
            "computed too little to be measured");
}

TEST_F(Decisions, WithoutAWorkerTheReasonSaysWhatToDo) {
  Decide({});
  Decide({}, {{.name = "train", .waiting = 0.99, .stalls = true}});
  EXPECT_EQ(target_.desired, 1u);
  EXPECT_EQ(target_.reason,
            "job train waits for 99 % of its time, and this pool has no "
            "worker: start one by leat-worker --pool NAME, or look at what "
            "scales the pool");
}

TEST_F(Decisions, AfterWorkersCameFiguresBeginAnew) {
  const MonotonicTime before = now_;
  EXPECT_EQ(policy_.LookFrom(now_), now_ - seconds(20));
  Decide({{"a", 100, 0}});
  EXPECT_EQ(policy_.LookFrom(now_), before + seconds(4));
  Decide({});
  EXPECT_EQ(policy_.LookFrom(now_), before + seconds(4)) << "one has gone";
}

TEST(PoolName, IsGoodForEngines) {
  EXPECT_TRUE(CheckPoolName("cpu-2.big_one").ok());
  for (const char* name : {"", "-a", ".a", "a b", "a/b", "a\n"})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPoolName(name))) << name;
  EXPECT_FALSE(CheckPoolName(std::string(64, 'a')).ok());
}

TEST(PoolBounds, MinIsAtMostMax) {
  EXPECT_TRUE(CheckPoolBounds({0, 0}).ok());
  EXPECT_TRUE(CheckPoolBounds({2, 2}).ok());
  const absl::Status status = CheckPoolBounds({3, 2});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("min 3 and max 2"));
  EXPECT_FALSE(CheckPoolBounds({0, kMaxPoolWorkers + 1}).ok());
}

}  // namespace
}  // namespace leat
