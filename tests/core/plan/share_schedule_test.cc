// SPDX-License-Identifier: Apache-2.0
#include "core/plan/share_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/layout.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using Rows = std::vector<uint64_t>;

std::vector<std::string> NamesOf(size_t sources) {
  std::vector<std::string> names = {"web", "books", "code"};
  for (size_t i = names.size(); i < sources; ++i)
    names.push_back("more" + std::to_string(i));
  names.resize(sources);
  return names;
}

ShareSchedule Schedule(const std::vector<SharesFrom>& shares,
                       uint32_t batch = 10) {
  auto schedule = ShareSchedule::Create(
      shares, NamesOf(shares.front().weights.size()), batch);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

std::string ErrorOf(const std::vector<SharesFrom>& shares, size_t sources = 3) {
  const auto schedule = ShareSchedule::Create(shares, NamesOf(sources), 10);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(schedule.status()));
}

Rows RowsBefore(const ShareSchedule& schedule, uint64_t step) {
  Rows rows(schedule.num_sources());
  schedule.RowsBefore(step, rows);
  return rows;
}

std::vector<ShareTree::Place> Batch(const ShareSchedule& schedule,
                                    uint64_t step) {
  std::vector<ShareTree::Place> places;
  const ShareSchedule::Segment segment = schedule.At(step);
  for (uint32_t place = 0; place < schedule.batch(); ++place)
    places.push_back(segment.Locate(step, place));
  return places;
}

// Segments that begin at steps of 1 to 5 after each other.
std::vector<SharesFrom> RandomShares(std::mt19937_64* random, size_t segments,
                                     size_t sources) {
  std::vector<SharesFrom> shares(segments);
  uint64_t step = 0;
  for (SharesFrom& segment : shares) {
    segment.from_step = std::exchange(step, step + 1 + (*random)() % 5);
    for (size_t i = 0; i < sources; ++i)
      segment.weights.push_back(static_cast<double>((*random)() % 4));
    segment.weights[(*random)() % sources] += 1;
  }
  return shares;
}

// The example in share_schedule.h.
TEST(ShareSchedule, GoesOnWithTheStreamsInANewSegment) {
  const ShareSchedule schedule = Schedule({{0, {7, 2, 1}}, {3, {0, 1, 1}}});
  EXPECT_EQ(RowsBefore(schedule, 3), (Rows{21, 6, 3}));
  EXPECT_EQ(RowsBefore(schedule, 4), (Rows{21, 11, 8}));
  const std::vector<ShareTree::Place> batch = Batch(schedule, 3);
  EXPECT_EQ(batch[0], (ShareTree::Place{2, 3}));
  EXPECT_EQ(batch[1], (ShareTree::Place{1, 6}));
  EXPECT_EQ(schedule.SegmentAt(2), 0u);
  EXPECT_EQ(schedule.SegmentAt(3), 1u);
  EXPECT_EQ(schedule.SegmentAt(kStreamSteps), 1u);
}

// Every step, those before, at and after the boundaries among them.
TEST(ShareSchedule, StreamsHaveNoGapsOverAnyBoundary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i) {
    const size_t sources = 1 + random() % 6;
    const ShareSchedule schedule =
        Schedule(RandomShares(&random, 1 + random() % 12, sources),
                 static_cast<uint32_t>(1 + random() % 40));
    Rows seen(sources);
    for (uint64_t step = 0; step < 60; ++step) {
      ASSERT_EQ(RowsBefore(schedule, step), seen) << step;
      for (uint32_t source = 0; source < sources; ++source)
        ASSERT_EQ(schedule.RowsBefore(step, source), seen[source]);
      for (const auto& [source, row] : Batch(schedule, step))
        ASSERT_EQ(row, seen[source]++) << step;
    }
  }
}

TEST(ShareSchedule, AStepAloneIsAsInTheWhole) {
  std::mt19937_64 random(2);
  const std::vector<SharesFrom> shares = RandomShares(&random, 1000, 3);
  const ShareSchedule whole = Schedule(shares);
  for (uint64_t step = 0; step < 2000; ++step) (void)whole.At(step);
  for (int i = 0; i < 200; ++i) {
    const uint64_t step = random() % 4000;
    // The other has kept no trees.
    EXPECT_EQ(Batch(whole, step), Batch(Schedule(shares), step)) << step;
  }
}

TEST(ShareSchedule, EachSegmentAddsAtMostTwiceItsTreesBound) {
  std::mt19937_64 random(3);
  const std::vector<SharesFrom> shares = RandomShares(&random, 40, 5);
  const ShareSchedule schedule = Schedule(shares, 64);
  std::vector<double> promised(5);
  for (uint64_t step = 0; step < 300; ++step) {
    const size_t segment = schedule.SegmentAt(step);
    const Rows rows = RowsBefore(schedule, step);
    for (size_t i = 0; i < 5; ++i)
      EXPECT_LE(std::abs(static_cast<double>(rows[i]) - promised[i]),
                1.68 * static_cast<double>(2 * segment + 1));
    const ShareSchedule::Segment at = schedule.At(step);
    for (size_t i = 0; i < 5; ++i)
      promised[i] += 64.0 * static_cast<double>(at.tree().weights()[i]) /
                     static_cast<double>(at.tree().sum());
  }
}

TEST(ShareSchedule, ASegmentOfTheSameSharesChangesNothing) {
  const ShareSchedule once = Schedule({{0, {7, 2, 1}}, {9, {1, 1, 1}}});
  const ShareSchedule again = Schedule(
      {{0, {7, 2, 1}}, {3, {0.7, 0.2, 0.1}}, {9, {1, 1, 1}}, {12, {1, 1, 1}}});
  EXPECT_EQ(again.num_segments(), 2u);
  EXPECT_EQ(FirstDifference(once, again), std::nullopt);
  for (uint64_t step = 0; step < 20; ++step)
    EXPECT_EQ(Batch(once, step), Batch(again, step));
}

// Weights as someone who measures gives them: they change a little at each step.
TEST(ShareSchedule, ARareSourceHasItsRowsInSegmentsOfOneStep) {
  std::mt19937_64 random(4);
  std::vector<SharesFrom> shares(1000);
  for (size_t i = 0; i < shares.size(); ++i) {
    const double change = 1 + 1e-5 * static_cast<double>(random() % 1000);
    shares[i] = {i, {0.7 * change, 0.299, 0.001}};
  }
  const ShareSchedule schedule = Schedule(shares, 256);
  EXPECT_NEAR(static_cast<double>(schedule.RowsBefore(1000, 2)), 256, 40);
}

TEST(ShareSchedule, TheLastStepOfAStreamOfTheLargestBatchesHasItsPlace) {
  const ShareSchedule schedule =
      Schedule({{0, {1, 2, 3}}, {kStreamSteps - 1, {3, 0, 1}}}, 1u << 20);
  const Rows rows = RowsBefore(schedule, kStreamSteps);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), uint64_t{0}),
            uint64_t{1} << 60);
  const auto [source, row] =
      schedule.At(kStreamSteps - 1).Locate(kStreamSteps - 1, (1u << 20) - 1);
  EXPECT_EQ(row, rows[source] - 1);
}

TEST(ShareSchedule, TheLargestScheduleIsMadeAndWalked) {
  std::vector<SharesFrom> shares(kMaxSegments);
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i].from_step = i;
    shares[i].weights.resize(20, 1);
    shares[i].weights[i % 20] = 5;
  }
  const ShareSchedule schedule = Schedule(shares, 48);
  const Rows rows = RowsBefore(schedule, kMaxSegments);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), uint64_t{0}),
            kMaxSegments * 48);
}

TEST(ShareSchedule, AnAppendedSegmentOrSourceLeavesHistoryUnchanged) {
  const std::vector<SharesFrom> shares = {{0, {7, 2, 1}}, {20, {1, 1, 1}}};
  std::vector<SharesFrom> more = {{0, {7, 2, 1, 0}}, {20, {1, 1, 1, 0}}};
  more.push_back({30, {1, 0, 1, 2}});
  const ShareSchedule before = Schedule(shares), after = Schedule(more);
  for (uint64_t step = 0; step < 30; ++step) {
    EXPECT_EQ(Batch(before, step), Batch(after, step)) << step;
    EXPECT_EQ(before.HistoryText(step), after.HistoryText(step)) << step;
  }
  EXPECT_EQ(before.HistoryText(30), after.HistoryText(30));
  EXPECT_NE(before.HistoryText(31), after.HistoryText(31));
  EXPECT_NE(Batch(before, 30), Batch(after, 30));
  EXPECT_EQ(FirstDifference(before, after), 30u);
}

TEST(ShareSchedule, HistoriesDifferFromTheFirstDifferenceOn) {
  const std::vector<SharesFrom> base = {{0, {7, 2}}, {20, {1, 1}}};
  const struct {
    std::vector<SharesFrom> shares;
    std::optional<uint64_t> difference;
  } cases[] = {
      {base, std::nullopt},
      {{{0, {0.7, 0.2}}, {20, {3, 3}}}, std::nullopt},  // the same shares
      {{{0, {7, 2, 0}}, {20, {1, 1, 0}}}, std::nullopt},
      {{{0, {7, 3}}, {20, {1, 1}}}, 0},
      {{{0, {2, 7}}, {20, {1, 1}}}, 0},
      {{{0, {7, 2, 1}}, {20, {1, 1, 1}}}, 0},
      {{{0, {7, 2}}}, 20},
      {{{0, {7, 2}}, {20, {1, 2}}}, 20},
      {{{0, {7, 2}}, {19, {1, 1}}}, 19},
      {{{0, {7, 2}}, {21, {1, 1}}}, 20},
      {{{0, {7, 2}}, {5, {7, 2}}, {20, {1, 1}}}, std::nullopt},
      {{{0, {7, 2}}, {5, {7, 1}}, {20, {1, 1}}}, 5},
      {{{0, {7, 2, 0}}, {20, {1, 1, 1}}}, 20},
  };
  const ShareSchedule schedule = Schedule(base);
  for (const auto& [shares, difference] : cases) {
    const ShareSchedule other = Schedule(shares);
    EXPECT_EQ(FirstDifference(schedule, other), difference);
    EXPECT_EQ(FirstDifference(other, schedule), difference);
    for (const uint64_t step : {0u, 1u, 5u, 6u, 19u, 20u, 21u, 22u, 1000u}) {
      const bool equal =
          !difference || (step <= *difference && *difference > 0);
      EXPECT_EQ(schedule.HistoryText(step) == other.HistoryText(step), equal)
          << step;
      if (equal && step > 0) {
        EXPECT_EQ(Batch(schedule, step - 1), Batch(other, step - 1));
      }
    }
  }
}

TEST(ShareSchedule, AHistoryNamesTheSourcesThatHaveAWeight) {
  const ShareSchedule schedule =
      Schedule({{0, {1, 0, 3}}, {9, {0, 1, 0}}, {12, {1, 1, 0}}});
  EXPECT_EQ(schedule.HistoryText(0),
            "from step 0: 0=1073741824 2=3221225472\n");
  EXPECT_EQ(schedule.HistoryText(9), schedule.HistoryText(0));
  EXPECT_EQ(schedule.HistoryText(10),
            schedule.HistoryText(0) + "from step 9: 1=4294967296\n");
}

TEST(ShareSchedule, RefusesStepsThatDoNotAscendFrom0) {
  EXPECT_EQ(ErrorOf({{5, {1, 1, 1}}}), "weights begins at step 5; want step 0");
  EXPECT_EQ(ErrorOf({{5, {1, 1, 1}}, {10, {1, 1, 1}}}),
            "weights[0] begins at step 5; want step 0");
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {10'000, {1, 1, 1}}, {500, {1, 1, 1}}}),
            "weights[2] begins at step 500, before step 10000; want steps that "
            "ascend");
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {0, {1, 1, 1}}}),
            "weights[1] begins at step 0, as weights[0] does; want steps that "
            "ascend");
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {kStreamSteps, {1, 1, 1}}}),
            "weights[1] begins at step 1099511627776; want a step below "
            "1099511627776");
}

TEST(ShareSchedule, RefusesOtherNumbersOfSourcesAndSegments) {
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {9, {1, 1}}}),
            "weights[1] has 2 numbers; want 3, one for each source");
  EXPECT_EQ(ErrorOf({}), "weights has 0 segments; want 1 to 1024");
  EXPECT_EQ(ErrorOf(std::vector<SharesFrom>(1025)),
            "weights has 1025 segments; want 1 to 1024");
  EXPECT_EQ(ErrorOf({{0, {}}}, 0), "0 sources: want 1 to 1000");
  EXPECT_EQ(ErrorOf({{0, std::vector<double>(1001, 1)}}, 1001),
            "1001 sources: want 1 to 1000");
}

TEST(ShareSchedule, ErrorsOfWeightsNameTheSegmentAndTheSource) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ErrorOf({{0, {1, nan, 1}}}),
            "weights[\"books\"] = nan; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {9, {1, 1, -1}}}),
            "weights[1][\"code\"] = -1; want a number of 0 or more");
  EXPECT_EQ(ErrorOf({{0, {1, 1, 1}}, {9, {0, 0, 0}}}),
            "weights[1]: all are 0; want at least one over 0");
}

}  // namespace
}  // namespace leat
