// SPDX-License-Identifier: Apache-2.0
//
// Retries, waits and second requests, without a network and without waiting.
#include "worker/source/storage/remote/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A transport whose answers come at set times, and the clock that brings them.
class World : public HttpTransport, public StorageClock {
 public:
  struct Script {
    Duration after{};  // no answer if negative
    HttpResponse response;
  };

  // The next request gets this answer.
  void Answer(Duration after, HttpResponse response) {
    scripts_.push_back({after, std::move(response)});
  }

  Id Begin(HttpRequest request, Done done) override {
    const Id id = ++last_id_;
    began_.push_back(now_ - start_);
    if (!saturated_) *request.heard = 1;
    heard_ = request.heard;
    if (scripts_.empty()) return id;
    const Script script = std::move(scripts_.front());
    scripts_.pop_front();
    if (script.after < Duration(0)) return id;
    waiting_.emplace(now_ + script.after,
                     Due{id, script.response, std::move(done)});
    return id;
  }
  void Cancel(Id id) override {
    std::erase_if(waiting_,
                  [id](const auto& each) { return each.second.id == id; });
    ++cancels_;
  }
  bool Saturated() const override { return saturated_; }

  MonotonicTime Now() const override { return now_; }
  WallTime WallNow() const override { return WallTime(); }
  void WaitUntil(Mutex* mu, CondVar*, MonotonicTime deadline) override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (at_wait) {
      mu->Unlock();
      at_wait();
      mu->Lock();
      return;
    }
    if (waiting_.empty() || waiting_.begin()->first > deadline) {
      now_ = std::max(now_, deadline);
      if (after_wait) after_wait();
      return;
    }
    auto node = waiting_.extract(waiting_.begin());
    now_ = std::max(now_, node.key());
    mu->Unlock();
    node.mapped().done(node.mapped().response);
    mu->Lock();
  }

  // Returns when requests began, from the start.
  const std::vector<Duration>& began() const { return began_; }
  int cancels() const { return cancels_; }
  void set_saturated(bool value) { saturated_ = value; }
  // A part of the last request's answer has come.
  void Hear() { ++*heard_; }
  std::function<void()> at_wait;     // instead of waiting
  std::function<void()> after_wait;  // when no answer came

 private:
  struct Due {
    Id id;
    HttpResponse response;
    Done done;
  };
  const MonotonicTime start_{std::chrono::hours(1)};
  MonotonicTime now_ = start_;
  std::deque<Script> scripts_;
  std::multimap<MonotonicTime, Due> waiting_;
  std::vector<Duration> began_;
  Id last_id_ = 0;
  int cancels_ = 0;
  bool saturated_ = false;
  std::atomic<uint64_t>* heard_ = nullptr;
};

// A task that is done by 200, tried again at 503, and fails otherwise.
class Task : public HttpTask {
 public:
  explicit Task(size_t hedge_bytes = 0) : hedge_bytes_(hedge_bytes) {}
  std::string Describe() const override { return "the task"; }
  HttpRequest Next(std::span<std::byte> other) override {
    EXPECT_EQ(other.empty() ? hedge_bytes_ : other.size(), hedge_bytes_);
    return {};
  }
  size_t hedge_bytes() const override { return hedge_bytes_; }
  Verdict Take(const HttpResponse& response,
               std::span<const std::byte> other) override {
    if (response.status == 200) {
      done_by_hedge = !other.empty();
      return {};
    }
    if (response.status != 503) {
      return {.kind = Verdict::Kind::kFailed,
              .status = NotFound("status {}", response.status),
              .stale_credentials = response.status == 403};
    }
    Verdict verdict = {Verdict::Kind::kRetry, Unavailable("busy")};
    verdict.wait = ParseRetryAfter(response.retry_after, WallTime());
    return verdict;
  }
  bool Refresh() override { return refreshes-- > 0; }

  bool done_by_hedge = false;
  int refreshes = 0;

 private:
  const size_t hedge_bytes_;
};

class Calls : public ::testing::Test {
 protected:
  Verdict Run(std::vector<std::unique_ptr<HttpTask>> tasks) {
    const CallContext context = {config_,   world_,   world_,  random_, late_,
                                 requests_, retries_, hedges_, stop_,   waits_};
    return RunTasks(context, tasks);
  }
  Verdict RunOne(std::unique_ptr<HttpTask> task = std::make_unique<Task>()) {
    std::vector<std::unique_ptr<HttpTask>> tasks;
    tasks.push_back(std::move(task));
    return Run(std::move(tasks));
  }
  void Busy(int times, std::string retry_after = "") {
    for (int i = 0; i < times; ++i) {
      world_.Answer({}, {.status = 503, .retry_after = retry_after});
    }
  }
  // Counts enough answers, each after 10 ms, to know what is late.
  void LearnLatency() {
    for (size_t i = 0; i < LateRanges::kMinSeen; ++i) {
      late_.CountRequest();
      late_.CountAnswer(milliseconds(10));
    }
  }

  StorageConfig config_ = {.parallel_ranges = 2,
                           .deadline = milliseconds(100'000),
                           .max_tries = 6,
                           .first_backoff = milliseconds(100),
                           .max_backoff = milliseconds(500),
                           .max_retry_after = milliseconds(2000),
                           .hedge_after = milliseconds(50),
                           .hedge_factor = 2,
                           .max_hedges = 1,
                           .hedge_every = 4};
  World world_;
  // Takes the whole of every wait.
  std::function<uint64_t()> random_ = [] { return last_; };
  static inline uint64_t last_ = 0;
  LateRanges late_{config_};
  std::atomic<uint64_t> requests_ = 0, retries_ = 0, hedges_ = 0;
  CallStop stop_;
  StorageWaits waits_;
};

TEST_F(Calls, WhatIsTriedAgainSaysWhy) {
  Busy(2);
  world_.Answer({}, {.status = 200});
  struct Watching final : Task {
    explicit Watching(const StorageWaits* w) : waits(w) {}
    HttpRequest Next(std::span<std::byte> other) override {
      seen.push_back(fmt::format("{}", fmt::join(waits->Texts(4), "; ")));
      return Task::Next(other);
    }
    const StorageWaits* const waits;
    std::vector<std::string> seen;
  };
  auto task = std::make_unique<Watching>(&waits_);
  const Watching* const kept = task.get();
  std::vector<std::unique_ptr<HttpTask>> tasks;
  tasks.push_back(std::move(task));
  const CallContext context = {config_,   world_,   world_,  random_, late_,
                               requests_, retries_, hedges_, stop_,   waits_};
  EXPECT_EQ(RunTasks(context, tasks).kind, Verdict::Kind::kDone);
  ASSERT_EQ(kept->seen.size(), 3u);
  EXPECT_EQ(kept->seen[0], "");
  EXPECT_THAT(kept->seen[2], testing::HasSubstr("(tried 2 times so far)"));
  EXPECT_THAT(waits_.Texts(4), testing::IsEmpty());
}

TEST_F(Calls, WaitsDoubleUpToTheirBound) {
  // random % (step + 1) == step for every step that is below the value.
  std::deque<uint64_t> steps;
  for (const int ms : {100, 200, 400, 500, 500}) {
    steps.push_back(Duration(milliseconds(ms)).count());
  }
  random_ = [&steps] {
    const uint64_t step = steps.front();
    steps.pop_front();
    return step;
  };
  Busy(5);
  world_.Answer({}, {.status = 200});
  EXPECT_EQ(RunOne().kind, Verdict::Kind::kDone);
  EXPECT_THAT(
      world_.began(),
      ElementsAre(milliseconds(0), milliseconds(100), milliseconds(300),
                  milliseconds(700), milliseconds(1200), milliseconds(1700)));
  EXPECT_EQ(retries_, 5);
}

TEST_F(Calls, WaitsAreRandomInTheirStep) {
  random_ = [] { return uint64_t{12'345'678'901'234'567'890ull}; };
  Busy(1);
  world_.Answer({}, {.status = 200});
  EXPECT_EQ(RunOne().kind, Verdict::Kind::kDone);
  EXPECT_LE(world_.began()[1], milliseconds(100));
  EXPECT_GT(world_.began()[1], milliseconds(0));
}

TEST_F(Calls, WhatTheServerAsksForIsWaitedUpToABound) {
  last_ = 0;
  Busy(1, "1");
  Busy(1, "3600");
  Busy(1, "Thu, 01 Jan 1970 00:00:01 GMT");
  Busy(1, "soon");
  world_.Answer({}, {.status = 200});
  EXPECT_EQ(RunOne().kind, Verdict::Kind::kDone);
  EXPECT_THAT(
      world_.began(),
      ElementsAre(milliseconds(0), milliseconds(1000), milliseconds(3000),
                  milliseconds(4000), milliseconds(4000)));
}

TEST_F(Calls, TriesAreCounted) {
  Busy(10);
  const Verdict verdict = RunOne();
  EXPECT_EQ(verdict.kind, Verdict::Kind::kFailed);
  EXPECT_EQ(verdict.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(verdict.status)), HasSubstr("6 tries"));
  EXPECT_EQ(world_.began().size(), 6);
}

TEST_F(Calls, AWaitBeyondTheDeadlineIsNotBegun) {
  config_.deadline = milliseconds(1500);
  Busy(1, "1");
  Busy(1, "1");
  const Verdict verdict = RunOne();
  EXPECT_THAT(std::string(Message(verdict.status)),
              HasSubstr("busy (gave up at the deadline"));
  EXPECT_EQ(world_.Now() - MonotonicTime(std::chrono::hours(1)),
            milliseconds(1000));
}

TEST_F(Calls, SilenceEndsAtTheDeadlineAndIsTakenBack) {
  world_.Answer(Duration(-1), {});
  const Verdict verdict = RunOne();
  EXPECT_EQ(verdict.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(verdict.status)), HasSubstr("the task"));
  EXPECT_EQ(world_.cancels(), 1);
}

TEST_F(Calls, SilenceIsToldUntilSomethingComes) {
  world_.Answer(std::chrono::seconds(8), {.status = 200});
  std::vector<std::string> told;  // after each second
  config_.silence = std::chrono::seconds(1);
  world_.after_wait = [&] {
    told.push_back(fmt::format("{}", fmt::join(waits_.Texts(4), "; ")));
    if (told.size() == 3) world_.Hear();
  };
  EXPECT_EQ(RunOne().kind, Verdict::Kind::kDone);
  const std::string silent =
      "the task: nothing of use has come for 1000 ms (tried 1 time so far)";
  EXPECT_THAT(told,
              ElementsAre("", silent, silent, "", silent, silent, silent));
  EXPECT_THAT(waits_.Texts(4), testing::IsEmpty());
}

TEST_F(Calls, WaitingForAConnectionIsNoSilence) {
  world_.Answer(std::chrono::seconds(8), {.status = 200});
  world_.set_saturated(true);
  config_.silence = std::chrono::seconds(1);
  int waits = 0;
  world_.after_wait = [&] {
    ++waits;
    EXPECT_THAT(waits_.Texts(4), testing::IsEmpty());
  };
  EXPECT_EQ(RunOne().kind, Verdict::Kind::kDone);
  EXPECT_GT(waits, 3);
}

TEST_F(Calls, AStopEndsWhatWaitsAndWhatIsToCome) {
  world_.Answer(Duration(-1), {});  // silence
  world_.at_wait = [this] { stop_.Stop(); };
  const Verdict verdict = RunOne();
  EXPECT_EQ(verdict.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(FaultOf(verdict.status), Fault::kTransient);
  EXPECT_EQ(world_.cancels(), 1);
  EXPECT_EQ(RunOne().status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(world_.Now() - MonotonicTime(std::chrono::hours(1)),
            config_.deadline);
}

TEST_F(Calls, OnlySoManyAreUnderWayAtATime) {
  std::vector<std::unique_ptr<HttpTask>> tasks;
  for (int i = 0; i < 5; ++i) {
    tasks.push_back(std::make_unique<Task>());
    world_.Answer(milliseconds(10), {.status = 200});
  }
  EXPECT_EQ(Run(std::move(tasks)).kind, Verdict::Kind::kDone);
  EXPECT_THAT(world_.began(),
              ElementsAre(milliseconds(0), milliseconds(0), milliseconds(10),
                          milliseconds(10), milliseconds(20)));
}

TEST_F(Calls, OneFinalErrorEndsAll) {
  std::vector<std::unique_ptr<HttpTask>> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(std::make_unique<Task>());
  world_.Answer(milliseconds(10), {.status = 200});
  world_.Answer(milliseconds(5), {.status = 404});
  const Verdict verdict = Run(std::move(tasks));
  EXPECT_EQ(verdict.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world_.began().size(), 2);
}

TEST_F(Calls, NewCredentialsAreTriedOnce) {
  auto task = std::make_unique<Task>();
  task->refreshes = 5;
  for (int i = 0; i < 3; ++i) world_.Answer({}, {.status = 403});
  EXPECT_EQ(RunOne(std::move(task)).kind, Verdict::Kind::kFailed);
  EXPECT_EQ(world_.began().size(), 2);
}

TEST_F(Calls, TheFasterOfTwoRequestsWins) {
  LearnLatency();
  world_.Answer(Duration(-1), {});
  world_.Answer(milliseconds(10), {.status = 200});
  auto task = std::make_unique<Task>(100);
  const Task* const kept = task.get();
  std::vector<std::unique_ptr<HttpTask>> tasks;
  tasks.push_back(std::move(task));
  const CallContext context = {config_,   world_,   world_,  random_, late_,
                               requests_, retries_, hedges_, stop_,   waits_};
  EXPECT_EQ(RunTasks(context, tasks).kind, Verdict::Kind::kDone);
  EXPECT_TRUE(kept->done_by_hedge);
  // Late after max(2 x 10 ms, hedge_after).
  EXPECT_THAT(world_.began(), ElementsAre(milliseconds(0), milliseconds(50)));
  EXPECT_EQ(hedges_, 1);
}

TEST_F(Calls, AFailedSecondRequestLeavesTheFirstAlone) {
  LearnLatency();
  world_.Answer(milliseconds(200), {.status = 200});
  world_.Answer(milliseconds(10), {.status = 503});
  EXPECT_EQ(RunOne(std::make_unique<Task>(100)).kind, Verdict::Kind::kDone);
  EXPECT_EQ(world_.began().size(), 2);
  EXPECT_EQ(retries_, 0);
}

TEST_F(Calls, AFailedFirstRequestLeavesTheSecondAlone) {
  LearnLatency();
  world_.Answer(milliseconds(60), {.status = 503});
  world_.Answer(milliseconds(100), {.status = 200});
  EXPECT_EQ(RunOne(std::make_unique<Task>(100)).kind, Verdict::Kind::kDone);
  EXPECT_EQ(world_.began().size(), 2);
  EXPECT_EQ(retries_, 0);
}

TEST_F(Calls, SecondRequestsAreFew) {
  // 16 requests are known: four may be requested twice, one at a time.
  LearnLatency();
  config_.deadline = milliseconds(1000);
  std::vector<std::unique_ptr<HttpTask>> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(std::make_unique<Task>(100));
  EXPECT_EQ(Run(std::move(tasks)).kind, Verdict::Kind::kFailed);
  EXPECT_EQ(hedges_, 1);
  // If all connections are in use, second requests make it worse.
  world_.set_saturated(true);
  RunOne(std::make_unique<Task>(100));
  EXPECT_EQ(hedges_, 1);
}

TEST_F(Calls, WhatIsLateIsLearnedFirst) {
  EXPECT_FALSE(late_.LateAfter().has_value());
  for (int i = 0; i < 100; ++i)
    late_.CountAnswer(milliseconds(i < 90 ? 1 : 90));
  EXPECT_EQ(late_.LateAfter(), milliseconds(180));
  for (int i = 0; i < 128; ++i) late_.CountAnswer(milliseconds(1));
  EXPECT_EQ(late_.LateAfter(), milliseconds(50));
}

TEST(RetryAfter, IsSecondsOrADateOfAnyYear) {
  const WallTime now(std::chrono::seconds(1'000'000'000));
  EXPECT_EQ(ParseRetryAfter("7", now), std::chrono::seconds(7));
  EXPECT_EQ(ParseRetryAfter("-7", now), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("soon", now), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("Sun, 09 Sep 2001 01:46:42 GMT", now),
            std::chrono::seconds(2));
  EXPECT_EQ(ParseRetryAfter("Sun, 09 Sep 2001 01:46:38 GMT", now),
            std::chrono::seconds(0));
  for (const char* date :
       {"Sat, 01 Jan 4768 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"})
    EXPECT_GT(*ParseRetryAfter(date, now), std::chrono::hours(1'000'000))
        << date;
  EXPECT_EQ(ParseRetryAfter("Fri, 01 Jan 0001 00:00:00 GMT", now),
            std::chrono::seconds(0));
}

}  // namespace
}  // namespace leat::worker
