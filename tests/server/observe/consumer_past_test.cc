// SPDX-License-Identifier: Apache-2.0
#include "server/observe/consumer_past.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace leat::server {
namespace {

// A letter is a slot: '#' a whole wait, '-' a tenth of one, '.' none. The
// consumer takes a step every `step_slots` slots.
ConsumerPast PastOf(std::string_view slots, int64_t step_slots = 1) {
  ConsumerPast past;
  int64_t slot = 1000;
  for (const char letter : slots) {
    const double wait = letter == '#' ? 1 : letter == '-' ? 0.1 : 0;
    past.waits[slot] = wait;
    past.steps[slot] = slot % step_slots == 0 ? 1 : 0;
    past.mean.waiting += wait / static_cast<double>(slots.size());
    ++slot;
  }
  return past;
}

constexpr std::string_view kCold = "#################";

TEST(ConsumerPast, MayBeOverAfterOneStretchOrTenSeconds) {
  EXPECT_TRUE(PastOf("..........##.......").MayBeOver());
  EXPECT_FALSE(PastOf("....########....").MayBeOver());
  EXPECT_FALSE(PastOf("-.-.-.-.-.-.-.-.").MayBeOver());
  EXPECT_TRUE(PastOf("########.....").MayBeOver());
  EXPECT_TRUE(PastOf("########......").MayBeOver());
}

TEST(ConsumerPast, HasStoppedAfterSomeTimeAndSomeSteps) {
  const auto stopped = [](std::string_view calm, int64_t step_slots) {
    const ConsumerPast past =
        PastOf(std::string(kCold).append(calm), step_slots);
    const auto slot = past.StoppedIn(kEnoughTime, kFewSteps);
    return slot ? *slot - 1000 : -1;
  };
  EXPECT_EQ(stopped(".........", 1), -1);
  EXPECT_EQ(stopped("..........", 1), 17);
  EXPECT_EQ(stopped("............", 1), 17);
  // A hiccup does not end it.
  EXPECT_EQ(stopped("........-...", 1), 17);
  EXPECT_EQ(stopped("........#...", 1), -1);
  EXPECT_EQ(stopped(".........................-....#..........", 1), 48);
  // Steps of 14 seconds: two of them are not enough.
  EXPECT_EQ(stopped("................", 7), -1);
  EXPECT_EQ(stopped("...........................", 7), 17);
  // It pauses, as for an evaluation, in the middle of a slot.
  ConsumerPast pauses = PastOf(std::string(kCold) + "-...............", 100);
  pauses.steps[1000 + kCold.size()] = 20;
  EXPECT_FALSE(pauses.StoppedIn(kEnoughTime, kFewSteps));
  // It never waited.
  EXPECT_FALSE(PastOf("....................").StoppedIn(kEnoughTime, 3));
  EXPECT_FALSE(ConsumerPast().StoppedIn(kEnoughTime, 3));
}

TEST(ConsumerPast, ThreeStretchesThatAreAsFarApartComeAgain) {
  const auto since = [](std::string_view slots) {
    const auto slot = PastOf(slots).ComeAgainSince();
    return slot ? *slot - 1000 : -1;
  };
  EXPECT_EQ(since("..#......#......#...."), 2);
  EXPECT_EQ(since("..##.....-#.....#........"), 2);
  EXPECT_EQ(since("..#......#..........."), -1);
  // Twice the longest distance has passed.
  EXPECT_EQ(since("#......#......#.............."), 0);
  EXPECT_EQ(since("#......#......#..............."), -1);
  // A stretch that lies much farther back does not count.
  EXPECT_EQ(since("####....................#......#......#..."), 24);
  EXPECT_EQ(since("####....................#......#..."), -1);
  // Without a pause it is one stretch.
  EXPECT_EQ(since("#..#..#..#..#..#..#"), -1);
  EXPECT_EQ(since(""), -1);
}

TEST(ConsumerPast, WaitsThatComeAgainAreNotOver) {
  ConsumerPast past = PastOf("#......#......#......");
  EXPECT_TRUE(past.MayBeOver());
  past.come_again = true;
  EXPECT_FALSE(past.MayBeOver());
}

}  // namespace
}  // namespace leat::server
