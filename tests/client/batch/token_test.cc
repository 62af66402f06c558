// SPDX-License-Identifier: Apache-2.0
#include "client/batch/token.h"

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

std::string Refusal(std::string_view token, std::string_view job = "train",
                    uint8_t plan = 1, uint64_t steps = 100) {
  const auto position =
      DecodeToken(token, job, {Plan(plan), Plan(plan)}, steps);
  if (position.ok()) return "accepted";
  EXPECT_TRUE(absl::IsInvalidArgument(position.status()));
  return std::string(Message(position.status()));
}

TEST(Token, ComesBackAsItWentIn) {
  const Position position{90, 99};
  const std::string token = EncodeToken("train", Plan(1), position);
  EXPECT_LT(token.size(), 1024u);
  const auto decoded = DecodeToken(token, "train", {Plan(1), Plan(9)}, 100);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, position);
}

TEST(Token, FitsWithTheLongestJobName) {
  EXPECT_LT(EncodeToken(std::string(128, 'x'), Plan(1), {~0ull, ~0ull}).size(),
            1024u);
}

TEST(Token, GarbageIsRefused) {
  EXPECT_THAT(Refusal(""), HasSubstr("not a Leat token"));
  EXPECT_THAT(Refusal("hello"), HasSubstr("not a Leat token"));
  EXPECT_THAT(Refusal(std::string(5000, '\0')), HasSubstr("not a Leat token"));
  EXPECT_THAT(Refusal("LEATTOK1"), HasSubstr("damaged"));
}

TEST(Token, AnyFlippedBitIsNoticed) {
  const std::string token = EncodeToken("train", Plan(1), {3, 4});
  for (size_t i = 0; i < token.size() * 8; ++i) {
    std::string flipped = token;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    EXPECT_NE(Refusal(flipped), "accepted") << "bit " << i;
  }
  for (size_t n = 0; n < token.size(); ++n)
    EXPECT_NE(Refusal(token.substr(0, n)), "accepted") << n << " bytes";
}

TEST(Token, OfAnotherJobNamesBoth) {
  const std::string token = EncodeToken("eval", Plan(2), {0, 1});
  EXPECT_THAT(Refusal(token), HasSubstr("\"eval\""));
  EXPECT_THAT(Refusal(token), HasSubstr("\"train\""));
}

TEST(Token, OfAnotherPlanOfTheSameJobSaysSo) {
  EXPECT_THAT(Refusal(EncodeToken("train", Plan(2), {0, 1})),
              AllOf(HasSubstr("another plan of job \"train\" (020202020202, "
                              "now 010101010101)"),
                    HasSubstr("at epoch 0, step 1")));
}

TEST(Token, OfAnOlderReleaseNamesThePlanHash) {
  const std::string token = EncodeToken("train", Plan(9), {3, 4});
  const auto decoded = DecodeToken(token, "train", {Plan(1), Plan(9)}, 100);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, (Position{3, 4}));
}

TEST(Token, StepBeyondTheEpochIsRefused) {
  EXPECT_THAT(Refusal(EncodeToken("train", Plan(1), {0, 100})),
              HasSubstr("step 100; job \"train\" has 100 steps"));
}

}  // namespace
}  // namespace leat::client
