// SPDX-License-Identifier: Apache-2.0
//
// Rows into shared memory.
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

TEST_F(PlacedTest, RowsAreComputedIntoTheirPlacesAndTakeNoBuffer) {
  const auto memory = std::make_shared<FakeMemory>(8);
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_
                  .Ask(id, Placed(MakeRequest(1, 0, 0, 1000, 6), memory,
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
  EXPECT_THAT(groups[0].slots, ElementsAre(7, 1, 2, 3));
  EXPECT_THAT(groups[1].rows, ElementsAre(4, 5));
  EXPECT_THAT(groups[1].slots, ElementsAre(0, 5));
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
                  .Ask(*id, Placed(MakeRequest(1, 0, 0, 0, 4),
                                   std::move(memory), {0, 1, 2, 3}, Lease()))
                  .ok());
  RunAll();
  EXPECT_TRUE(seen);
  EXPECT_EQ(ended_, 1);
}

TEST_F(PlacedTest, AStreamThatIsNotReadStopsWithPlacedGroupsToo) {
  const auto memory = std::make_shared<FakeMemory>(40);
  std::vector<uint32_t> slots(40);
  for (uint32_t i = 0; i < 40; ++i) slots[i] = i;
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(
      scheduler_.Ask(id, Placed(MakeRequest(1, 0, 0, 0, 40), memory, slots))
          .ok());
  EXPECT_EQ(RunAll(), 12);
  const uint32_t seen = wake_->Prepare();
  sink_->Take();  // wakes the threads, though no buffer comes back
  EXPECT_NE(wake_->Prepare(), seen);
  EXPECT_EQ(RunAll(), 12);
}

// Groups of four rows, where bytes limit them.
class PlacedGroupsTest : public PlacedTest {
 protected:
  // Returns how many rows the groups of a request have, if a row takes `cost`
  // and many have been computed before.
  std::vector<size_t> Sizes(size_t rows, bool placed, Duration cost,
                            std::shared_ptr<FakeWork> work) {
    work->on_compute = [this, cost](uint64_t, uint64_t) {
      clock_.Advance(cost);
    };
    SchedulerOptions options = Options();
    options.max_rows_per_group = most_;
    options.max_unsent_groups_per_stream = 1000;
    Scheduler scheduler(options, &pool_, wake_, clock_);
    const auto id = scheduler.OpenStream(work, sink_);
    EXPECT_TRUE(id.ok());
    const auto memory = std::make_shared<FakeMemory>(300);
    std::vector<uint32_t> slots(300);
    std::iota(slots.begin(), slots.end(), 0);
    const auto compute = [&](uint64_t request_id, size_t n) {
      RowRequest request = MakeRequest(request_id, 0, 0, 0, n);
      if (placed)
        request = Placed(std::move(request), memory,
                         {slots.begin(), slots.begin() + n});
      EXPECT_TRUE(scheduler.Ask(*id, std::move(request)).ok());
      while (scheduler.RunOne(nullptr)) {
      }
      return sink_->Take();
    };
    compute(1, 300);
    std::vector<size_t> sizes;
    for (const auto& group : compute(2, rows))
      sizes.push_back(group.rows.size());
    return sizes;
  }
  std::vector<size_t> Sizes(size_t rows, bool placed, Duration cost) {
    return Sizes(rows, placed, cost, std::make_shared<FakeWork>("a"));
  }

  size_t most_ = 1024;
};

TEST_F(PlacedGroupsTest, AreLargerWhereNothingIsSent) {
  using std::chrono::milliseconds;
  EXPECT_THAT(Sizes(40, true, milliseconds(1)), ElementsAre(16, 16, 8));
  EXPECT_THAT(Sizes(10, false, milliseconds(1)), ElementsAre(4, 4, 2));
  most_ = 6;
  EXPECT_THAT(Sizes(14, true, milliseconds(1)), ElementsAre(6, 6, 2));
}

TEST_F(PlacedGroupsTest, AreNoLargerThanAThreadComputesSoon) {
  using std::chrono::milliseconds;
  EXPECT_THAT(Sizes(12, true, milliseconds(10)), ElementsAre(5, 5, 2));
  EXPECT_THAT(Sizes(10, true, milliseconds(200)), ElementsAre(4, 4, 2));
}

TEST_F(PlacedGroupsTest, OfADeviceAreWhatItHasRoomFor) {
  device_.inline_done = true;
  EXPECT_THAT(
      Sizes(10, true, Duration(0), std::make_shared<StagedWork>("a", &device_)),
      ElementsAre(4, 4, 2));
}

TEST_F(PlacedTest, BufferedAndPlacedAsksShareAStreamButNoGroup) {
  const auto memory = std::make_shared<FakeMemory>(2);
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(1, 0, 0, 10, 2)).ok());
  ASSERT_TRUE(
      scheduler_.Ask(id, Placed(MakeRequest(2, 0, 0, 20, 2), memory, {0, 1}))
          .ok());
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
          .Ask(id, Placed(MakeRequest(1, 0, 0, 0, 2), memory, {1, 0}, Lease()))
          .ok());
  RunAll();
  const auto groups = sink_->Take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(groups[0].status));
  EXPECT_THAT(groups[0].slots, ElementsAre(1, 0));
  EXPECT_EQ(ended_, 1);
}

TEST_F(PlacedTest, ACancelledAsksLeaseEndsWithItsLastRowInWork) {
  const auto memory = std::make_shared<FakeMemory>(10);
  const auto work = std::make_shared<FakeWork>("a");
  const auto id = Open(work);
  const std::vector<uint32_t> slots = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  // Not begun: it ends at once.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeRequest(1, 0, 0, 0, 10), memory, slots, Lease()))
          .ok());
  scheduler_.Cancel(id, 1);
  EXPECT_EQ(ended_, 1);
  // Between two rows: it ends at once, too.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeRequest(2, 0, 0, 0, 10), memory, slots, Lease()))
          .ok());
  RunAll(5);
  scheduler_.Cancel(id, 2);
  EXPECT_EQ(ended_, 2);
  // In a row: it ends after the row.
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeRequest(3, 0, 0, 0, 10), memory, slots, Lease()))
          .ok());
  work->on_compute = [&](uint64_t, uint64_t) {
    scheduler_.Cancel(id, 3);
    EXPECT_EQ(ended_, 2);
  };
  RunAll();
  EXPECT_EQ(ended_, 3);
  // It ends by closing.
  work->on_compute = nullptr;
  ASSERT_TRUE(
      scheduler_
          .Ask(id, Placed(MakeRequest(4, 0, 0, 0, 10), memory, slots, Lease()))
          .ok());
  RunAll(1);
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 4);
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(PlacedTest, ALeaseMayEndAnywhereButUnderTheLock) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  const auto memory = std::make_shared<FakeMemory>(4);
  const auto request = [&](uint64_t request_id) {
    return scheduler_.Ask(id, Placed(MakeRequest(request_id, 0, 0, 0, 4),
                                     memory, {0, 1, 2, 3}, MakeLease([this] {
                                       ++ended_;
                                       scheduler_.stats();  // would not return
                                     })));
  };
  ASSERT_TRUE(request(1).ok());
  RunAll();
  ASSERT_TRUE(request(2).ok());
  RunAll(2);
  scheduler_.Cancel(id, 2);
  ASSERT_TRUE(request(3).ok());
  ASSERT_TRUE(request(4).ok());
  RunAll(1);
  scheduler_.CloseStream(id);
  EXPECT_EQ(ended_, 4);
}

TEST_F(PlacedTest, MalformedPlacesAreRefused) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  const auto memory = std::make_shared<FakeMemory>(2);
  const auto refused = [&](std::shared_ptr<const SharedMemory> to,
                           std::vector<uint32_t> slots) {
    return absl::IsInvalidArgument(scheduler_.Ask(
        id,
        Placed(MakeRequest(1, 0, 0, 0, 2), std::move(to), std::move(slots))));
  };
  EXPECT_TRUE(refused(memory, {0}));
  EXPECT_TRUE(refused(memory, {0, 1, 1}));
  EXPECT_TRUE(refused(memory, {0, 2}));
  EXPECT_TRUE(refused(std::make_shared<FakeMemory>(2, 0), {0, 1}));
  EXPECT_FALSE(refused(memory, {1, 0}));
}

}  // namespace
}  // namespace leat::worker
