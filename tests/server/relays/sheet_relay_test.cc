// SPDX-License-Identifier: Apache-2.0
//
// Previews of rows, from a trainer's session to viewers of the page.
#include "server/relays/sheet_relay.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace leat::server {
namespace {

using std::chrono::seconds;

class SheetRelayTest : public testing::Test {
 protected:
  void Join(uint64_t id, const std::string& plan) {
    relay_.Join(id, plan, "consumer-" + std::to_string(id),
                [this, id](const v1::WantSheet& wanted) {
                  asked_.emplace_back(id, wanted);
                });
  }
  SheetRelay::Seen Look(const std::string& plan, int at_s) {
    return relay_.Look(plan, MonotonicTime(seconds(at_s)));
  }
  void Add(uint64_t id, v1::RowsSheet sheet, int at_s) {
    relay_.Add(id, std::move(sheet), MonotonicTime(seconds(at_s)));
  }
  // The answer to the last request.
  v1::RowsSheet Sheet(int tiles = 1, uint32_t side = 2) const {
    v1::RowsSheet sheet;
    sheet.set_number(asked_.back().second.number());
    sheet.set_step(7);
    for (int i = 0; i < tiles; ++i) {
      v1::SheetTile& tile = *sheet.add_tiles();
      tile.set_width(side);
      tile.set_height(side);
      tile.set_rgb(std::string(size_t{3} * side * side, 'x'));
      tile.set_label("cat");
    }
    return sheet;
  }

  std::vector<std::pair<uint64_t, v1::WantSheet>> asked_;
  SheetRelay relay_;
};

TEST_F(SheetRelayTest, OneConsumerOfThePlanIsAskedOnce) {
  Join(1, "q");
  Join(2, "p");
  Join(3, "p");
  EXPECT_EQ(Look("p", 0).sheet, nullptr);
  EXPECT_TRUE(Look("p", 1).consumers);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].first, 2u);
  EXPECT_EQ(asked_[0].second.rows(), SheetRelay::kRows);
  Add(2, Sheet(), 2);
  const SheetRelay::Seen seen = Look("p", 3);
  ASSERT_NE(seen.sheet, nullptr);
  EXPECT_EQ(seen.sheet->consumer(), "consumer-2");
  EXPECT_EQ(seen.sheet->step(), 7u);
  EXPECT_EQ(asked_.size(), 1u);
  // It is shown while another one is on its way.
  EXPECT_NE(Look("p", 8).sheet, nullptr);
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(SheetRelayTest, NobodyToAskIsSaid) {
  Join(1, "q");
  EXPECT_FALSE(Look("p", 0).consumers);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(SheetRelayTest, WhoDoesNotAnswerOrLeavesIsFollowedByAnother) {
  Join(1, "p");
  Join(2, "p");
  Look("p", 0);
  Look("p", 9);
  EXPECT_EQ(asked_.size(), 1u);
  Look("p", 10);
  EXPECT_EQ(asked_.size(), 2u);
  relay_.Leave(1);
  Look("p", 11);
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[2].first, 2u);
}

TEST_F(SheetRelayTest, WhatNobodyAskedForIsDropped) {
  Join(1, "p");
  Join(2, "p");
  Look("p", 0);
  Add(2, Sheet(), 1);  // from another session
  v1::RowsSheet other = Sheet();
  other.set_number(99);
  Add(1, other, 1);
  EXPECT_EQ(Look("p", 1).sheet, nullptr);
  Add(1, Sheet(), 1);
  Add(1, Sheet(2), 1);  // a second answer
  EXPECT_EQ(Look("p", 2).sheet->tiles_size(), 1);
  Add(7, Sheet(), 2);  // from an unknown session
}

TEST_F(SheetRelayTest, HostileAnswersAreNoSheets) {
  Join(1, "p");
  int at_s = 0;
  const auto answered = [&](const auto& spoil) {
    at_s += 10;
    Look("p", at_s);
    v1::RowsSheet sheet = Sheet();
    spoil(&sheet);
    Add(1, sheet, at_s);
    return *Look("p", at_s).sheet;
  };
  EXPECT_EQ(answered([](v1::RowsSheet*) {}).tiles_size(), 1);
  const std::vector<std::function<void(v1::RowsSheet*)>> spoils = {
      [](v1::RowsSheet* sheet) { sheet->mutable_tiles(0)->set_width(3); },
      [](v1::RowsSheet* sheet) { sheet->mutable_tiles(0)->set_width(0); },
      [](v1::RowsSheet* sheet) {
        sheet->mutable_tiles(0)->set_width(1u << 31);
      },
      [](v1::RowsSheet* sheet) {
        sheet->mutable_tiles(0)->set_label(std::string(9999, 'x'));
      },
      [](v1::RowsSheet* sheet) { sheet->set_note(std::string(9999, 'x')); },
      [](v1::RowsSheet* sheet) {
        for (int i = 0; i < 20; ++i) *sheet->add_tiles() = sheet->tiles(0);
      }};
  for (const auto& spoil : spoils) {
    const v1::RowsSheet shown = answered(spoil);
    EXPECT_EQ(shown.tiles_size(), 0);
    EXPECT_NE(shown.why_not().find("no sheet"), std::string::npos);
  }
  EXPECT_GT(answered([&](v1::RowsSheet* sheet) {
              const uint64_t number = sheet->number();
              *sheet = Sheet(SheetRelay::kRows, SheetRelay::kSide);
              sheet->set_number(number);
            }).ByteSizeLong(),
            300'000u);
}

TEST_F(SheetRelayTest, KeepsFewAndNotForLong) {
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string plan = "p" + std::to_string(i);
    Join(i, plan);
    Look(plan, static_cast<int>(i));
    Add(i, Sheet(), static_cast<int>(i));
  }
  EXPECT_NE(Look("p19", 19).sheet, nullptr);
  EXPECT_EQ(Look("p0", 19).sheet, nullptr);
  EXPECT_EQ(Look("p19", 80).sheet, nullptr);
}

TEST_F(SheetRelayTest, TheOneThatIsLookedAtIsKeptAlsoIfItsTimeIsTheOldest) {
  for (const auto& [plan, at_s] :
       {std::pair("a", 5), std::pair("z", 4), std::pair("m", 5)}) {
    for (char other = 'b'; other < 'b' + 16; ++other)
      Look(std::string(2, other), 5);
    Join(1, plan);
    EXPECT_TRUE(Look(plan, at_s).consumers);
    Add(1, Sheet(), 5);
    EXPECT_NE(Look(plan, 5).sheet, nullptr) << plan;
    relay_.Leave(1);
  }
}

}  // namespace
}  // namespace leat::server
