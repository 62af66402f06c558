// SPDX-License-Identifier: Apache-2.0
//
// Rows into lent memory, and rows in stages.
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fake_rows.h"
#include "worker/scheduler.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

constexpr size_t kBig = 100;

// Memory of `rows` places of FakeWork's two fields, filled with 0xEE.
class FakeMemory : public LentMemory {
 public:
  explicit FakeMemory(uint32_t rows, int device = -1)
      : rows_(rows),
        device_(device),
        bytes_(rows * (kBig + 8), std::byte{0xEE}),
        offsets_{0, rows * kBig} {}
  std::byte* base() const override { return bytes_.data(); }
  int device() const override { return device_; }
  uint32_t rows() const override { return rows_; }
  std::span<const uint64_t> field_offsets() const override { return offsets_; }
  // The sample in a place; 0xEE…EE: untouched.
  uint64_t At(uint32_t place) const {
    uint64_t sample = 0;
    std::memcpy(&sample, base() + rows_ * kBig + place * 8, 8);
    return sample;
  }
  std::byte First(uint32_t place) const { return bytes_[place * kBig]; }

 private:
  const uint32_t rows_;
  const int device_;
  mutable std::vector<std::byte> bytes_;
  const std::vector<uint64_t> offsets_;
};

constexpr uint64_t kUntouched = 0xEEEEEEEEEEEEEEEE;

// A lease that tells when it ends.
std::shared_ptr<const void> MakeLease(std::function<void()> ended) {
  return {new int(0), [ended = std::move(ended)](int* p) {
            delete p;
            ended();
          }};
}

RowAsk Placed(RowAsk ask, std::shared_ptr<const LentMemory> memory,
              std::vector<uint32_t> places,
              std::shared_ptr<const void> lease = nullptr) {
  ask.memory = std::move(memory);
  ask.places = std::move(places);
  ask.lease = std::move(lease);
  return ask;
}

// A device of `slots` groups. Finishes them when told, or at once; rows are
// written when a group is finished.
class FakeDevice {
 public:
  explicit FakeDevice(std::shared_ptr<WakeSignal> wake, int slots)
      : wake_(std::move(wake)), free_(slots) {}
  ~FakeDevice() { EXPECT_EQ(stages, 0); }

  bool CanBegin() const { return free_ > 0; }
  bool Take() {
    if (free_ <= 0 || refuse.exchange(false)) return false;
    --free_;
    ++stages;
    return true;
  }
  void Return() {
    ++free_;
    --stages;
    wake_->Notify();
  }
  void Finish(std::function<void()> write,
              std::function<void(absl::Status)> done) {
    ++finishes;
    if (inline_done) {
      write();
      return done(result);
    }
    MutexLock lock(&mu_);
    waiting_.emplace_back(std::move(write), std::move(done));
    changed_.NotifyAll();
  }
  // Finishes the group that has waited longest. False: none waits.
  bool FinishOne(absl::Status status = absl::OkStatus()) {
    std::pair<std::function<void()>, std::function<void(absl::Status)>> next;
    {
      MutexLock lock(&mu_);
      if (waiting_.empty()) return false;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next.first();
    next.second(std::move(status));
    return true;
  }
  void WaitOne() {
    MutexLock lock(&mu_);
    while (waiting_.empty()) changed_.Wait(&mu_);
  }

  bool inline_done = false;
  absl::Status result;
  std::atomic<bool> refuse{false};  // the next BeginGroup
  std::atomic<int> stages{0}, finishes{0};

 private:
  const std::shared_ptr<WakeSignal> wake_;
  std::atomic<int> free_;
  Mutex mu_;
  CondVar changed_;
  std::deque<
      std::pair<std::function<void()>, std::function<void(absl::Status)>>>
      waiting_ ABSL_GUARDED_BY(mu_);
};

class StagedWork : public FakeWork {
 public:
  StagedWork(std::string key, FakeDevice* device)
      : FakeWork(std::move(key), kBig), device_(device) {}
  bool staged() const override { return true; }
  bool CanBegin() const override { return device_->CanBegin(); }
  std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const override {
    if (!device_->Take()) return nullptr;
    return std::make_unique<Stage>(this, outputs, device_);
  }

 private:
  class Stage : public GroupStage {
   public:
    Stage(const StagedWork* work, const GroupOutputs& outputs,
          FakeDevice* device)
        : work_(work),
          outputs_(outputs),
          device_(device),
          samples_(outputs.rows) {}
    ~Stage() override { device_->Return(); }
    absl::Status Prepare(size_t row, uint64_t epoch, uint64_t sample,
                         ThreadState*) override {
      if (work_->on_compute) work_->on_compute(epoch, sample);
      samples_[row] = sample;
      if (sample == work_->bad_sample)
        return DataLoss("sample {} is bad", sample);
      return absl::OkStatus();
    }
    void Finish(std::function<void(absl::Status)> done) override {
      device_->Finish([this] { Write(); }, std::move(done));
    }

   private:
    void Write() {
      for (size_t row = 0; row < outputs_.rows; ++row) {
        std::memset(outputs_.At(0, row), static_cast<int>(samples_[row] & 255),
                    outputs_.field_bytes[0]);
        std::memcpy(outputs_.At(1, row), &samples_[row], 8);
      }
    }
    const StagedWork* const work_;
    const GroupOutputs outputs_;
    FakeDevice* const device_;
    std::vector<uint64_t> samples_;
  };
  FakeDevice* const device_;
};

class PlacedTest : public testing::Test {
 protected:
  PlacedTest() : scheduler_(Options(), &pool_, wake_, clock_) {}
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.threads = 0;
    options.group_bytes = 4 * (kBig + 8);
    options.max_unsent_groups_per_stream = 3;
    return options;
  }
  Scheduler::StreamId Open(std::shared_ptr<const RowWork> work) {
    auto id = scheduler_.OpenStream(std::move(work), sink_);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  int RunAll(int limit = 1'000'000) {
    int rows = 0;
    while (rows < limit && scheduler_.RunOne(nullptr)) ++rows;
    return rows;
  }
  std::shared_ptr<const void> Lease() {
    return MakeLease([this] { ++ended_; });
  }

  FakeClock clock_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{64 << 20, wake_};
  FakeDevice device_{wake_, 2};
  std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  std::atomic<int> ended_{0};
  Scheduler scheduler_;
};

TEST_F(PlacedTest, RowsAreComputedIntoTheirPlacesAndTakeNoBuffer) {
  const auto memory = std::make_shared<FakeMemory>(8);
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeAsk(1, 0, 0, 1000, 6), memory,
                                  {7, 1, 2, 3, 0, 5}, Lease()))
                  .ok());
  EXPECT_EQ(RunAll(5), 5);
  EXPECT_EQ(pool_.buffers_in_use(), 0u);
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(RunAll(), 1);
  EXPECT_EQ(ended_, 1);
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[0].placed);
  EXPECT_TRUE(groups[0].payload.empty());
  EXPECT_THAT(groups[0].places, ElementsAre(7, 1, 2, 3));
  EXPECT_THAT(groups[1].rows, ElementsAre(4, 5));
  EXPECT_THAT(groups[1].places, ElementsAre(0, 5));
  const uint64_t expected[] = {1004,       1001, 1002,       1003,
                               kUntouched, 1005, kUntouched, 1000};
  for (uint32_t place = 0; place < 8; ++place) {
    EXPECT_EQ(memory->At(place), expected[place]) << place;
    EXPECT_EQ(memory->First(place), std::byte(expected[place] & 255));
  }
  EXPECT_EQ(scheduler_.stats().rows_placed_total, 6u);
  EXPECT_EQ(pool_.allocations_total(), 0u);
}

TEST_F(PlacedTest, TheMemoryIsLetGoBeforeTheAnswerAndTheLeaseAfterIt) {
  auto memory = std::make_shared<FakeMemory>(4);
  const std::weak_ptr<FakeMemory> weak = memory;
  class Sink : public GroupSink {
   public:
    explicit Sink(std::function<void()> check) : check_(std::move(check)) {}
    void OnGroup(FinishedGroup) override { check_(); }
    std::function<void()> check_;
  };
  bool seen = false;
  const auto sink = std::make_shared<Sink>([&] {
    EXPECT_TRUE(weak.expired());
    EXPECT_EQ(ended_, 0);
    seen = true;
  });
  const auto id = scheduler_.OpenStream(std::make_shared<FakeWork>("a"), sink);
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(scheduler_
                  .Ask(*id, Placed(MakeAsk(1, 0, 0, 0, 4), std::move(memory),
                                   {0, 1, 2, 3}, Lease()))
                  .ok());
  RunAll();
  EXPECT_TRUE(seen);
  EXPECT_EQ(ended_, 1);
}

TEST_F(PlacedTest, AStreamThatIsNotReadStopsWithPlacedGroupsToo) {
  const auto memory = std::make_shared<FakeMemory>(40);
  std::vector<uint32_t> places(40);
  for (uint32_t i = 0; i < 40; ++i) places[i] = i;
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(
      scheduler_.Ask(id, Placed(MakeAsk(1, 0, 0, 0, 40), memory, places)).ok());
  EXPECT_EQ(RunAll(), 12);
  const uint32_t seen = wake_->Prepare();
  sink_->Take();  // wakes the threads, though no buffer comes back
  EXPECT_NE(wake_->Prepare(), seen);
  EXPECT_EQ(RunAll(), 12);
}

TEST_F(PlacedTest, BufferedAndPlacedAsksShareAStreamButNoGroup) {
  const auto memory = std::make_shared<FakeMemory>(2);
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_.Ask(id, MakeAsk(1, 0, 0, 10, 2)).ok());
  ASSERT_TRUE(
      scheduler_.Ask(id, Placed(MakeAsk(2, 0, 0, 20, 2), memory, {0, 1})).ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_FALSE(groups[0].placed);
  EXPECT_EQ(groups[0].payload.size(), 2 * (kBig + 8));
  EXPECT_TRUE(groups[1].placed);
}

TEST_F(PlacedTest, AFailedRowIsAnsweredByAnErrorThatNamesItsPlaces) {
  const auto memory = std::make_shared<FakeMemory>(2);
  const auto work = std::make_shared<FakeWork>("a");
  work->bad_sample = 1;
  const auto id = Open(work);
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeAsk(1, 0, 0, 0, 2), memory, {1, 0}, Lease()))
          .ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_THAT(groups[0].places, ElementsAre(1, 0));
  EXPECT_EQ(ended_, 1);
}

TEST_F(PlacedTest, ACancelledAsksLeaseEndsWithItsLastRowInWork) {
  const auto memory = std::make_shared<FakeMemory>(10);
  const auto work = std::make_shared<FakeWork>("a");
  const auto id = Open(work);
  const std::vector<uint32_t> places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  // Not begun: at once.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeAsk(1, 0, 0, 0, 10), memory, places, Lease()))
          .ok());
  scheduler_.Cancel(id, 1);
  EXPECT_EQ(ended_, 1);
  // Between two rows: at once too.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeAsk(2, 0, 0, 0, 10), memory, places, Lease()))
          .ok());
  RunAll(5);
  scheduler_.Cancel(id, 2);
  EXPECT_EQ(ended_, 2);
  // In a row: after it.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeAsk(3, 0, 0, 0, 10), memory, places, Lease()))
          .ok());
  work->on_compute = [&](uint64_t, uint64_t) {
    scheduler_.Cancel(id, 3);
    EXPECT_EQ(ended_, 2);
  };
  RunAll();
  EXPECT_EQ(ended_, 3);
  // By closing.
  work->on_compute = nullptr;
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeAsk(4, 0, 0, 0, 10), memory, places, Lease()))
          .ok());
  RunAll(1);
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 4);
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(PlacedTest, ALeaseMayEndAnywhereButUnderTheLock) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto ask = [&](uint64_t ask_id) {
    return scheduler_.Ask(id, Placed(MakeAsk(ask_id, 0, 0, 0, 4), memory,
                                     {0, 1, 2, 3}, MakeLease([this] {
                                       ++ended_;
                                       scheduler_.stats();  // would not return
                                     })));
  };
  ASSERT_TRUE(ask(1).ok());
  RunAll();
  ASSERT_TRUE(ask(2).ok());
  RunAll(2);
  scheduler_.Cancel(id, 2);
  ASSERT_TRUE(ask(3).ok());
  ASSERT_TRUE(ask(4).ok());
  RunAll(1);
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 4);
}

TEST_F(PlacedTest, MalformedPlacesAreRefused) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  const auto memory = std::make_shared<FakeMemory>(2);
  const auto refused = [&](std::shared_ptr<const LentMemory> to,
                           std::vector<uint32_t> places) {
    return absl::IsInvalidArgument(scheduler_.Ask(
        id, Placed(MakeAsk(1, 0, 0, 0, 2), std::move(to), std::move(places))));
  };
  EXPECT_TRUE(refused(memory, {0}));
  EXPECT_TRUE(refused(memory, {0, 1, 1}));
  EXPECT_TRUE(refused(memory, {0, 2}));
  EXPECT_TRUE(refused(std::make_shared<FakeMemory>(2, 0), {0, 1}));
  EXPECT_FALSE(refused(memory, {1, 0}));
}

class StageTest : public PlacedTest {
 protected:
  std::shared_ptr<StagedWork> Staged() {
    return std::make_shared<StagedWork>("a", &device_);
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(scheduler_.WaitIdle(MonotonicTime::max()));
    EXPECT_EQ(device_.stages, 0);
    EXPECT_EQ(pool_.buffers_in_use(), 0u);
  }
};

TEST_F(StageTest, RowsArePreparedThenFinishedTogether) {
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_.Ask(id, MakeAsk(1, 0, 0, 10, 4)).ok());
  EXPECT_EQ(RunAll(3), 3);
  EXPECT_EQ(device_.finishes, 0);
  EXPECT_EQ(RunAll(), 1);
  EXPECT_EQ(device_.finishes, 1);
  EXPECT_EQ(sink_->size(), 0u);
  EXPECT_FALSE(scheduler_.WaitIdle(clock_.Now()));
  EXPECT_TRUE(device_.FinishOne());
  auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].payload.size(), 4 * (kBig + 8));
  EXPECT_EQ(groups[0].payload[0], std::byte{10});
  EXPECT_EQ(groups[0].payload[4 * kBig], std::byte{10});
  EXPECT_EQ(device_.stages, 0);
  groups.clear();
  ExpectNothingLeft();
}

TEST_F(StageTest, AStageMayEndWithinFinish) {
  device_.inline_done = true;
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeAsk(1, 0, 0, 10, 4), memory, {3, 2, 1, 0},
                                  Lease()))
                  .ok());
  RunAll();
  EXPECT_EQ(sink_->size(), 1u);
  EXPECT_EQ(memory->At(0), 13u);
  EXPECT_EQ(memory->At(3), 10u);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(memory.use_count(), 1);
  sink_->Take();
  ExpectNothingLeft();
}

TEST_F(StageTest, ADeviceWithoutRoomLetsOtherJobsWork) {
  sink_->KeepNothing();
  const auto staged = Open(Staged());
  const auto plain = Open(std::make_shared<FakeWork>("b"));
  ASSERT_TRUE(scheduler_.Ask(staged, MakeAsk(1, 0, 0, 0, 40)).ok());
  ASSERT_TRUE(scheduler_.Ask(plain, MakeAsk(1, 0, 0, 0, 40)).ok());
  EXPECT_EQ(RunAll(), 2 * 4 + 40);
  while (device_.FinishOne()) RunAll();
  EXPECT_EQ(device_.finishes, 10);
  ExpectNothingLeft();
}

TEST_F(StageTest, ARefusedGroupIsTriedAgainAndNothingLeaks) {
  sink_->KeepNothing();
  device_.inline_done = true;
  device_.refuse = true;
  const auto staged = Open(Staged());
  const auto plain = Open(std::make_shared<FakeWork>("b"));
  ASSERT_TRUE(scheduler_.Ask(staged, MakeAsk(1, 0, 0, 0, 4)).ok());
  ASSERT_TRUE(scheduler_.Ask(plain, MakeAsk(1, 0, 0, 0, 4)).ok());
  EXPECT_TRUE(scheduler_.RunOne(nullptr));
  EXPECT_EQ(RunAll(), 7);
  ExpectNothingLeft();
}

TEST_F(StageTest, AnErrorInPrepareFailsTheGroupWithoutFinish) {
  const auto work = Staged();
  work->bad_sample = 1;
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeAsk(1, 0, 0, 0, 4),
                                  std::make_shared<FakeMemory>(4), {0, 1, 2, 3},
                                  Lease()))
                  .ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_EQ(device_.finishes, 0);
  EXPECT_EQ(ended_, 1);
  ExpectNothingLeft();
}

TEST_F(StageTest, AnErrorOfTheStageFailsTheGroup) {
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_.Ask(id, MakeAsk(1, 0, 0, 0, 4)).ok());
  RunAll();
  ASSERT_TRUE(device_.FinishOne(Unavailable("the device is lost")));
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(groups[0].status));
  EXPECT_TRUE(groups[0].payload.empty());
  EXPECT_EQ(scheduler_.stats().row_errors_total, 4u);
  ExpectNothingLeft();
}

TEST_F(StageTest, CancelledAtEveryPointNothingIsLeft) {
  for (int rows = 0; rows <= 9; ++rows) {
    ended_ = 0;
    const auto memory = std::make_shared<FakeMemory>(9);
    const auto id = Open(Staged());
    ASSERT_TRUE(scheduler_
                    .Ask(id, Placed(MakeAsk(1, 0, 0, 0, 9), memory,
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8}, Lease()))
                    .ok());
    for (int i = 0; i < rows && scheduler_.RunOne(nullptr);) ++i;
    scheduler_.Cancel(id, 1);
    EXPECT_EQ(RunAll(), 0);
    // Groups that were handed to the device are finished and delivered.
    EXPECT_EQ(ended_, device_.stages == 0 ? 1 : 0) << rows;
    while (device_.FinishOne()) {
    }
    EXPECT_EQ(ended_, 1) << rows;
    EXPECT_EQ(sink_->Take().size(), static_cast<size_t>(std::min(rows, 8) / 4));
    scheduler_.CloseStream(id);
    EXPECT_EQ(memory.use_count(), 1);
    ExpectNothingLeft();
  }
}

TEST_F(StageTest, ClosedWhileADeviceWritesTheMemoryStaysUntilItsEnd) {
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeAsk(1, 0, 0, 10, 4), memory, {0, 1, 2, 3},
                                  Lease()))
                  .ok());
  RunAll();
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 0);
  EXPECT_GT(memory.use_count(), 1);
  EXPECT_TRUE(device_.FinishOne());
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(memory.use_count(), 1);
  sink_->Take();
  ExpectNothingLeft();
}

TEST_F(StageTest, PreparingIsChargedAndWaitingForTheDeviceIsNot) {
  const auto work = Staged();
  work->on_compute = [this](uint64_t, uint64_t) {
    clock_.Advance(std::chrono::milliseconds(2));
  };
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_.Ask(id, MakeAsk(1, 0, 0, 0, 4)).ok());
  RunAll();
  clock_.Advance(std::chrono::seconds(1));
  device_.FinishOne();
  EXPECT_EQ(scheduler_.stats().busy_ns_total, 8'000'000u);
}

// Real threads, a device thread, and everything withdrawn at random.
TEST(StageThreads, SurviveStorms) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 3);
  Scheduler scheduler(
      {.threads = 4, .group_bytes = 1000, .max_unsent_groups_per_stream = 2},
      &pool, wake, Clock::Real());
  std::atomic<bool> stop{false};
  std::thread finisher([&] {
    std::minstd_rand random(99);
    while (!stop || device.stages > 0)
      if (!device.FinishOne(random() % 16 == 0 ? Unavailable("lost")
                                               : absl::OkStatus()))
        std::this_thread::yield();
  });
  std::atomic<int> begun{0}, ended{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&, c] {
      std::minstd_rand random(static_cast<uint32_t>(c + 1));
      for (int round = 0; round < 30; ++round) {
        const auto sink = std::make_shared<FakeSink>();
        sink->KeepNothing();
        const auto work = std::make_shared<StagedWork>(
            std::string(1, "abc"[round % 3]), &device);
        if (round % 4 == 0) work->bad_sample = 105;
        const auto id = scheduler.OpenStream(work, sink);
        ASSERT_TRUE(id.ok());
        size_t rows = 0;
        for (uint64_t ask = 0; ask < 8; ++ask) {
          const auto n = static_cast<uint32_t>(1 + random() % 50);
          rows += n;
          RowAsk made = MakeAsk(ask, 0, 8 - ask, ask * 100, n);
          if (random() % 2 == 0) {
            std::vector<uint32_t> places = made.rows;
            ++begun;
            made = Placed(std::move(made), std::make_shared<FakeMemory>(n),
                          std::move(places), MakeLease([&] { ++ended; }));
          }
          ASSERT_TRUE(scheduler.Ask(*id, std::move(made)).ok());
        }
        if (round % 3 == 1) scheduler.Cancel(*id, random() % 8);
        if (round % 3 == 0) sink->WaitRows(rows);
        scheduler.CloseStream(*id);
        if (round % 3 != 0) continue;
        std::set<std::pair<uint64_t, uint32_t>> seen;
        for (const FinishedGroup& group : sink->Take())
          for (const uint32_t row : group.rows)
            EXPECT_TRUE(seen.emplace(group.ask_id, row).second);
        EXPECT_EQ(seen.size(), rows);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(scheduler.WaitIdle(MonotonicTime::max()));
  scheduler.Stop();
  stop = true;
  finisher.join();
  EXPECT_EQ(begun, ended);
  EXPECT_EQ(pool.buffers_in_use(), 0u);
}

TEST(StageThreads, StopWaitsForTheDevice) {
  const auto wake = std::make_shared<WakeSignal>();
  BufferPool pool(4 << 20, wake);
  FakeDevice device(wake, 2);
  const auto sink = std::make_shared<FakeSink>();
  std::atomic<bool> stopped{false};
  std::thread finisher;
  {
    Scheduler scheduler({.threads = 2, .group_bytes = 400}, &pool, wake,
                        Clock::Real());
    const auto id =
        scheduler.OpenStream(std::make_shared<StagedWork>("a", &device), sink);
    ASSERT_TRUE(id.ok());
    // More rows than the device takes: the rest is forgotten.
    ASSERT_TRUE(scheduler.Ask(*id, MakeAsk(1, 0, 0, 0, 100)).ok());
    device.WaitOne();
    finisher = std::thread([&] {
      while (!stopped)
        if (!device.FinishOne()) std::this_thread::yield();
    });
  }
  stopped = true;
  finisher.join();
  EXPECT_GE(sink->size(), 1u);
  EXPECT_EQ(device.stages, 0);
  sink->Take();
  EXPECT_EQ(pool.buffers_in_use(), 0u);
}

}  // namespace
}  // namespace leat::worker
