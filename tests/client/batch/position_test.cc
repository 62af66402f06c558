// SPDX-License-Identifier: Apache-2.0
#include "client/batch/position.h"

#include <functional>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Digest Plan(uint8_t seed) {
  Digest digest;
  digest.fill(seed);
  return digest;
}

std::function<PositionHashes(const EpochStep&)> Always(const Digest& position,
                                                       const Digest& plan) {
  return [=](const EpochStep&) { return PositionHashes{position, plan}; };
}

std::string Refusal(std::string_view position, std::string_view job = "train",
                    uint8_t plan = 1, uint64_t steps = 100) {
  const auto decoded =
      DecodePosition(position, job, Always(Plan(plan), Plan(plan)), steps);
  if (decoded.ok()) return "accepted";
  EXPECT_TRUE(absl::IsInvalidArgument(decoded.status()));
  return std::string(Message(decoded.status()));
}

TEST(Position, ComesBackAsItWentIn) {
  const EpochStep next{90, 99};
  const std::string position = EncodePosition("train", Plan(1), next);
  EXPECT_LT(position.size(), 1024u);
  const auto decoded =
      DecodePosition(position, "train", Always(Plan(1), Plan(9)), 100);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, next);
}

TEST(Position, FitsWithTheLongestJobName) {
  EXPECT_LT(
      EncodePosition(std::string(128, 'x'), Plan(1), {~0ull, ~0ull}).size(),
      1024u);
}

TEST(Position, GarbageIsRefused) {
  EXPECT_THAT(Refusal(""), HasSubstr("not a Leat position"));
  EXPECT_THAT(Refusal("hello"), HasSubstr("not a Leat position"));
  EXPECT_THAT(Refusal(std::string(5000, '\0')),
              HasSubstr("not a Leat position"));
  EXPECT_THAT(Refusal("LEATTOK1"), HasSubstr("damaged"));
}

TEST(Position, AnyFlippedBitIsNoticed) {
  const std::string position = EncodePosition("train", Plan(1), {3, 4});
  for (size_t i = 0; i < position.size() * 8; ++i) {
    std::string flipped = position;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    EXPECT_NE(Refusal(flipped), "accepted") << "bit " << i;
  }
  for (size_t n = 0; n < position.size(); ++n)
    EXPECT_NE(Refusal(position.substr(0, n)), "accepted") << n << " bytes";
}

TEST(Position, OfAnotherJobNamesBoth) {
  const std::string position = EncodePosition("eval", Plan(2), {0, 1});
  EXPECT_THAT(Refusal(position), HasSubstr("\"eval\""));
  EXPECT_THAT(Refusal(position), HasSubstr("\"train\""));
}

TEST(Position, OfAnotherPlanOfTheSameJobSaysSo) {
  EXPECT_THAT(Refusal(EncodePosition("train", Plan(2), {0, 1})),
              AllOf(HasSubstr("another plan of job \"train\" (020202020202, "
                              "now 010101010101)"),
                    HasSubstr("pass start=(0, 1)")));
}

TEST(Position, OfAnOlderReleaseNamesThePlanHash) {
  const std::string position = EncodePosition("train", Plan(9), {3, 4});
  const auto decoded =
      DecodePosition(position, "train", Always(Plan(1), Plan(9)), 100);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, (EpochStep{3, 4}));
}

TEST(Position, StepBeyondTheEpochIsRefused) {
  EXPECT_THAT(Refusal(EncodePosition("train", Plan(1), {0, 100})),
              HasSubstr("step 100; job \"train\" has 100 steps"));
}

}  // namespace
}  // namespace leat::client
