// SPDX-License-Identifier: Apache-2.0
//
// The daemon's own token, and the one before it. Tokens of the list, roles and
// certificates are tried over real calls (tests/security/access_test.cc).
#include "rpc/access/access.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class AccessTest : public ::testing::Test {
 protected:
  bool Takes(const std::string& token) const {
    const bool by_page =
        access_.AdmitToken("AdminService/GetStatus", token).ok();
    EXPECT_EQ(
        access_.AdmitHeaders("/leat.v1.AdminService/GetStatus", token).ok(),
        by_page)
        << token;
    return by_page;
  }

  FakeClock clock_;
  Access access_{{.token = "the-first-own-token"}, &clock_};
};

TEST_F(AccessTest, ATokenThatWasReplacedIsTakenForADay) {
  access_.ReplaceOwn("the-second-own-token");
  clock_.Advance(hours(24) - seconds(1));
  EXPECT_TRUE(Takes("the-first-own-token"));
  EXPECT_TRUE(Takes("the-second-own-token"));
  clock_.Advance(seconds(1));
  EXPECT_FALSE(Takes("the-first-own-token"));
  EXPECT_TRUE(Takes("the-second-own-token"));
}

TEST_F(AccessTest, AThirdTokenEndsTheFirst) {
  access_.ReplaceOwn("the-second-own-token");
  access_.ReplaceOwn("the-third-own-token");
  EXPECT_FALSE(Takes("the-first-own-token"));
  EXPECT_TRUE(Takes("the-second-own-token"));
  EXPECT_TRUE(Takes("the-third-own-token"));
}

TEST_F(AccessTest, TheSameTokenReadAgainGivesTheOneBeforeNoMoreTime) {
  access_.ReplaceOwn("the-second-own-token");
  clock_.Advance(hours(23));
  access_.ReplaceOwn("the-second-own-token");
  clock_.Advance(hours(1));
  EXPECT_FALSE(Takes("the-first-own-token"));
}

TEST_F(AccessTest, AnOwnTokenOfTheListCountsByTheListAlone) {
  const std::string listed =
      TokenText(std::vector<uint8_t>(kTokenRandomBytes, 7));
  access_.ReplaceOwn(listed);
  EXPECT_FALSE(Takes("the-first-own-token")) << "the list does not have it";
  EXPECT_FALSE(Takes(listed));
  auto tokens = std::make_shared<AccessTokens>();
  tokens->tokens.push_back({.id = std::string(TokenId(listed)),
                            .name = "n",
                            .role = Role::kOperator,
                            .sha256 = HashOf(listed)});
  access_.Replace(tokens);
  EXPECT_FALSE(Takes("the-first-own-token"));
  EXPECT_TRUE(Takes(listed));
  access_.ReplaceOwn("the-second-own-token");
  EXPECT_FALSE(Takes("the-first-own-token"));
  EXPECT_TRUE(Takes(listed));
  EXPECT_TRUE(Takes("the-second-own-token"));
}

}  // namespace
}  // namespace leat::rpc
