// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/roles.h"

#include <fstream>
#include <numeric>
#include <sstream>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string SomeToken() {
  std::array<uint8_t, kTokenRandomBytes> random;
  std::iota(random.begin(), random.end(), 0xf0);
  return TokenText(random);
}

TEST(Access, EveryMethodHasOneLine) {
  const std::span<const MethodRule> rules = MethodRules();
  for (size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(FindMethod(rules[i].method), &rules[i]) << rules[i].method;
    EXPECT_TRUE(MayCall(Role::kOperator, rules[i])) << rules[i].method;
  }
  EXPECT_EQ(FindMethod("AdminService/Nothing"), nullptr);
  EXPECT_EQ(FindMethod(""), nullptr);
}

TEST(Access, RolesAreReadByName) {
  for (const Role role : kRoles) EXPECT_EQ(*RoleFrom(Name(role)), role);
  for (const char* wrong : {"", "root", "Viewer", "viewer\n"}) {
    const absl::Status status = RoleFrom(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr("viewer, trainer, worker or operator"));
  }
}

TEST(Access, ATokensTextSaysItsId) {
  const std::string text = SomeToken();
  EXPECT_EQ(text,
            "leat_f0f1f2f3_f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d"
            "0e0f10111213");
  EXPECT_EQ(TokenId(text), "f0f1f2f3");
  std::string upper = text;
  upper[6] = 'F';
  for (const std::string& other :
       {std::string(), std::string("x"), text + "0", text.substr(1), upper,
        std::string(text.size(), 'a')})
    EXPECT_EQ(TokenId(other), "") << other;
}

TEST(Access, OnlyPrintableTextsAreTokensAndNoneIsTold) {
  EXPECT_EQ(*TokenIn("file", SomeToken(), kMinOwnToken), SomeToken());
  EXPECT_EQ(*TokenIn("file", "x", 1), "x");
  const std::string least = "0123456789abcdef";
  for (const std::string& around :
       {least, least + "\n", least + "\r\n", " " + least, "\n\t" + least,
        "\v\f " + least + " \t\r\n\n"})
    EXPECT_EQ(*TokenIn("file", around, kMinOwnToken), least);
  for (const std::string& wrong :
       {std::string("x"), std::string(), std::string(" \n"),
        std::string("0123456789abcde"), std::string("   0123456789abcde   "),
        std::string("\xc2\xa0"
                    "0123456789abcdef"),
        std::string("0123456789\nabcdef"), std::string("0123456789 abcdef"),
        std::string("0123456789\0abcdef", 17),
        std::string(kMaxTokenText + 1, 'a')}) {
    const absl::Status status = TokenIn("file", wrong, kMinOwnToken).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("file"));
    if (wrong.size() > 1) {
      EXPECT_THAT(std::string(Message(status)), Not(HasSubstr("0123")));
    }
  }
  EXPECT_TRUE(CheckTokenName("vision.team").ok());
  for (const std::string& wrong :
       {std::string(), std::string("a b"), std::string("a\n"),
        std::string(kMaxTokenName + 1, 'a')})
    EXPECT_FALSE(CheckTokenName(wrong).ok()) << wrong;
}

TEST(Access, ATokenExpiresAtItsTime) {
  AccessToken token;
  EXPECT_FALSE(token.ExpiredAt(WallTime::max()));
  token.expires_at = WallTime(std::chrono::seconds(10));
  EXPECT_FALSE(token.ExpiredAt(WallTime(std::chrono::seconds(9))));
  EXPECT_TRUE(token.ExpiredAt(WallTime(std::chrono::seconds(10))));
}

// If this fails after a change of the table: `leat access roles` prints the
// text for the page.
TEST(Access, ThePageShowsTheTable) {
  std::stringstream text;
  text << std::ifstream(LEAT_SOURCE_DIR "/docs/run/access.md").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\n\n" + MethodTable() + "\n"));
}

}  // namespace
}  // namespace leat
