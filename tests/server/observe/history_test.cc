// SPDX-License-Identifier: Apache-2.0
#include "server/observe/history.h"

#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kMinute = std::chrono::minutes(1);

History::Sample Of(float rows_per_s) {
  History::Sample sample;
  sample.rows_per_s = rows_per_s;
  return sample;
}

class HistoryTest : public testing::Test {
 protected:
  std::vector<float> Rates(std::string_view series, MonotonicTime since) const {
    std::vector<float> rates;
    history_->ForEach(series, since, [&](const History::Sample& sample) {
      rates.push_back(sample.rows_per_s);
    });
    return rates;
  }

  MonotonicTime now_{std::chrono::hours(5)};
  std::unique_ptr<History> history_ =
      std::make_unique<History>(History::Config());
};

TEST_F(HistoryTest, HasOneSampleASlotSinceATime) {
  history_->Add("w0", Of(1), now_);
  history_->Add("w0", Of(2), now_ + std::chrono::seconds(1));  // the same slot
  history_->Add("w0", Of(3), now_ + std::chrono::seconds(2));
  history_->Add("w1", Of(9), now_);
  history_->Add("w0", Of(4), now_ + 2 * kMinute);  // none in between
  EXPECT_THAT(Rates("w0", now_), ElementsAre(2, 3, 4));
  EXPECT_THAT(Rates("w0", now_ + std::chrono::seconds(2)), ElementsAre(3, 4));
  EXPECT_THAT(Rates("w1", now_), ElementsAre(9));
  EXPECT_THAT(Rates("w2", now_), IsEmpty());
}

TEST_F(HistoryTest, KeepsAnHourAndForgetsWhoHasNothingInIt) {
  history_->Add("gone", Of(1), now_);
  for (int i = 0; i < 90; ++i)
    history_->Add("w0", Of(static_cast<float>(i)), now_ + i * kMinute);
  EXPECT_EQ(Rates("w0", {}).size(), 60u);
  EXPECT_EQ(Rates("w0", {}).back(), 89);
  EXPECT_EQ(history_->num_series(), 1u);
  EXPECT_EQ(history_->NumberOf("gone"), 0u);
  EXPECT_EQ(history_->NameOf(history_->NumberOf("w0")), "w0");
}

TEST_F(HistoryTest, IsBoundedInBytesByForgettingTheOldest) {
  History::Config config;
  config.max_bytes = 8 << 20;
  history_ = std::make_unique<History>(config);
  for (int minute = 0; minute < 20; ++minute)
    for (int worker = 0; worker < 10'000; ++worker)
      history_->Add(fmt::format("w{}", worker), Of(static_cast<float>(minute)),
                    now_ + minute * kMinute);
  EXPECT_LE(history_->bytes(), config.max_bytes);
  EXPECT_THAT(Rates("w7", {}), ElementsAre(19));
  EXPECT_EQ(history_->num_series(), 10'000u);
}

TEST_F(HistoryTest, IsBoundedInSeries) {
  History::Config config;
  config.max_series = 100;
  history_ = std::make_unique<History>(config);
  for (int i = 0; i < 1000; ++i)
    history_->Add(fmt::format("w{}", i), Of(1), now_);
  EXPECT_EQ(history_->num_series(), 100u);
  EXPECT_THAT(Rates("w999", now_), IsEmpty());
}

TEST_F(HistoryTest, WhatIsOlderThanItKeepsIsLeftOut) {
  history_->Add("w0", Of(1), now_);
  history_->Add("w0", Of(2), now_ - 3 * kMinute);
  EXPECT_THAT(Rates("w0", {}), ElementsAre(1));
}

TEST_F(HistoryTest, SharesAreKeptToHalfAPerCent) {
  History::Sample sample = Of(1);
  for (const double share : {0.0, 0.013, 0.5, 0.707, 1.0}) {
    sample.Set(3, share);
    EXPECT_NEAR(sample.Get(3), share, 0.0026);
  }
  sample.Set(3, 7);
  EXPECT_EQ(sample.Get(3), 1);
  sample.Set(3, -1);
  EXPECT_EQ(sample.Get(3), 0);
  static_assert(sizeof(History::Sample) == 16);
}

}  // namespace
}  // namespace leat::server
