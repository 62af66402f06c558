// SPDX-License-Identifier: Apache-2.0
#include "client/batch/position_shares.h"

#include <string>
#include <vector>

#include "client/batch/position.h"
#include "core/status.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Digest HashWith(uint8_t seed) {
  Digest digest;
  digest.fill(seed);
  return digest;
}

const std::vector<MixedSource> kSources = {
    {"web", {}}, {"books", {}}, {"code", {}}};

ShareSchedule ScheduleWith(const std::vector<SharesFrom>& shares) {
  std::vector<std::string> names;
  for (size_t i = 0; i < shares[0].weights.size(); ++i)
    names.push_back(fmt::format("s{}", i));
  absl::StatusOr<ShareSchedule> schedule =
      ShareSchedule::Create(shares, names, 10);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

// Returns the refusal of a position at step 8 of a mixture with these shares,
// by a job of the given name with `own` shares.
std::string SharesRefusal(const std::vector<SharesFrom>& theirs,
                          const std::vector<SharesFrom>& own,
                          std::string_view job = "later") {
  const ShareSchedule before = ScheduleWith(theirs), now = ScheduleWith(own);
  const std::string position =
      EncodePosition("mix", HashWith(2), {0, 8}, {&before, &kSources, 8});
  const auto decoded = DecodePosition(
      position, job,
      [&](const EpochStep& next) {
        return PositionHashes{
            HashWith(1), HashWith(1), {&now, &kSources, next.step}};
      },
      100);
  EXPECT_TRUE(absl::IsInvalidArgument(decoded.status())) << decoded.status();
  return std::string(Message(decoded.status()));
}

TEST(PositionShares, NamesTheStepFromWhichSharesDifferAndBoth) {
  const std::vector<SharesFrom> first = {{0, {7, 2, 1}}};
  EXPECT_THAT(
      SharesRefusal(first, {{0, {7, 2, 1}}, {6, {1, 1, 8}}}),
      HasSubstr("position: of job \"mix\" (plan 020202020202): from step 6 on "
                "its shares are web 0.7, books 0.2, code 0.1, here web 0.1, "
                "books 0.1, code 0.8; want one of job \"later\""));
  EXPECT_THAT(SharesRefusal({{0, {7, 2, 1}}, {3, {1, 1, 0}}}, first, "mix"),
              AllOf(HasSubstr("another plan of job \"mix\""),
                    HasSubstr("from step 3 on its shares are web 0.5, books "
                              "0.5, code 0, here web 0.7"),
                    HasSubstr("pass start=(0, 8)")));
  // Another weight in the first segment; those that are equal are not shown.
  EXPECT_THAT(SharesRefusal(first, {{0, {7, 1, 2}}}),
              HasSubstr("from step 0 on its shares are books 0.2, code 0.1, "
                        "here books 0.1, code 0.2"));
  // The same weights from another step on.
  EXPECT_THAT(
      SharesRefusal({{0, {1, 0}}, {5, {1, 1}}}, {{0, {1, 0}}, {4, {1, 1}}}),
      HasSubstr("from step 4 on its shares are web 1, books 0, here web "
                "0.5, books 0.5"));
  // A source that was appended with a weight from the beginning.
  EXPECT_THAT(SharesRefusal({{0, {1, 1}}}, first),
              HasSubstr("code 0, here web 0.7, books 0.2, code 0.1"));
}

TEST(PositionShares, SaysNothingOfSharesThatAreEqualUpToThere) {
  // They differ from step 8 on, and the position is at step 8.
  const std::string text =
      SharesRefusal({{0, {7, 2, 1}}}, {{0, {7, 2, 1}}, {8, {1, 1, 1}}}, "mix");
  EXPECT_THAT(text, HasSubstr("its pipeline, seed, batch"));
  EXPECT_EQ(text.find("its shares are"), text.npos);
}

TEST(PositionShares, IsBoundedWhateverItsShares) {
  std::vector<SharesFrom> many;
  for (size_t i = 0; i < 8; ++i) {
    many.push_back({i, std::vector<double>(100, 1.0)});
    many.back().weights[i] = 2;
  }
  const ShareSchedule schedule = ScheduleWith(many);
  for (const uint64_t step : {1u, 2u, 4u, 8u}) {
    const std::string position =
        EncodePosition(std::string(128, 'x'), HashWith(1), {~0ull, step},
                       {&schedule, &kSources, step});
    EXPECT_LT(position.size(), 1024u);
    // Two segments fit, four do not.
    EXPECT_EQ(position.size() > 500, step <= 2) << step;
  }
}

TEST(PositionShares, HostileSharesAreIgnored) {
  const ShareSchedule own = ScheduleWith({{0, {7, 2, 1}}});
  const PositionShares shares = {&own, &kSources, 8};
  stored::v1::Position position;
  const auto with = [&](std::vector<uint64_t> steps) {
    position.clear_shares();
    for (const uint64_t step : steps) {
      stored::v1::DealtShares& segment = *position.add_shares();
      segment.set_from_step(step);
      segment.add_weights(~0ull);
    }
    return SharesDifference(position, shares);
  };
  EXPECT_EQ(with({1}), "");
  EXPECT_EQ(with({0, 0}), "");
  EXPECT_EQ(with({0, 9, 4}), "");
  EXPECT_THAT(with({0, ~0ull}),
              HasSubstr("from step 0 on its shares are web 1"));
  position.mutable_shares(0)->clear_weights();
  EXPECT_EQ(SharesDifference(position, shares), "");
}

}  // namespace
}  // namespace leat::client
