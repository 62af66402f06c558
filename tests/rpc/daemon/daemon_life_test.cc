// SPDX-License-Identifier: Apache-2.0
#include "rpc/daemon/daemon_life.h"

#include <array>
#include <string>

#include "absl/status/status.h"
#include "core/cluster/roles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FailStart, WrongFlagsHaveACodeOfTheirOwn) {
  EXPECT_EQ(FailStart("leat-test", absl::InvalidArgumentError("--x")), 2);
  EXPECT_EQ(FailStart("leat-test", absl::UnavailableError("in use")), 1);
}

TEST(ChangesText, NamesWhatIsOtherThanBeforeAndNoSecret) {
  const Security first = {.token = "the-first-own-token",
                          .ca_pem = "ca",
                          .cert_pem = "cert",
                          .key_pem = "key"};
  EXPECT_EQ(ChangesText(first, first), "nothing");
  Security second = first;
  second.token = "the-second-own-token";
  EXPECT_EQ(ChangesText(first, second),
            "--access-token-file (the one before is taken for 24 h more)");
  second.cert_pem = "other cert";
  second.key_pem = "other key";
  second.ca_pem.clear();
  const std::string all = ChangesText(first, second);
  // As "printf cert | sha256sum" says.
  EXPECT_THAT(all, HasSubstr("--tls-cert (sha256 c870ba8f7d5f, before sha256 "
                             "06298432e806)"));
  EXPECT_THAT(all, HasSubstr(", --tls-key, "));
  EXPECT_THAT(all, HasSubstr("--tls-ca (none, before sha256 "));
  for (const char* secret : {"first-own", "second-own", "other key"})
    EXPECT_THAT(all, Not(HasSubstr(secret)));
}

TEST(ChangesText, HasTheIdsOfTokensOfTheList) {
  const std::string a = TokenText(std::array<uint8_t, kTokenRandomBytes>{1});
  const std::string b = TokenText(std::array<uint8_t, kTokenRandomBytes>{2});
  EXPECT_EQ(ChangesText({.token = a}, {.token = b}),
            "--access-token-file (02000000, before 01000000)");
  EXPECT_EQ(ChangesText({.token = "the-first-own-token"}, {.token = b}),
            "--access-token-file (02000000, before another)");
  EXPECT_EQ(ChangesText({.token = a}, {.token = "the-first-own-token"}),
            "--access-token-file (another, before 01000000)");
}

}  // namespace
}  // namespace leat::rpc
