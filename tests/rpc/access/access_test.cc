// SPDX-License-Identifier: Apache-2.0
//
// The daemon's own token, and the one before it. Tokens of the list, roles and
// certificates are tried over real calls (tests/security/access_test.cc).
#include "rpc/access/access.h"

#include <string>

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

}  // namespace
}  // namespace leat::rpc
