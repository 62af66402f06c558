// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/credentials.h"

#include <unistd.h>

#include <fstream>

#include "gtest/gtest.h"

namespace leat::client {
namespace {

TEST(Credentials, FollowTheFileOfTheToken) {
  const std::string path =
      testing::TempDir() + "token-" + std::to_string(getpid());
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  const Credentials credentials({.token = "first", .ca_pem = "roots"}, path);
  EXPECT_EQ(credentials.Now().token, "first") << "there is no file yet";
  write("second\n");
  EXPECT_EQ(credentials.Now().token, "second");
  EXPECT_EQ(credentials.Now().ca_pem, "roots");
  for (const char* text : {"", "half of\na file"}) {
    write(text);
    EXPECT_EQ(credentials.Now().token, "second") << text;
  }
  unlink(path.c_str());
  EXPECT_EQ(credentials.Now().token, "second");
}

TEST(Credentials, WithoutAFileTheTokenStays) {
  EXPECT_EQ(Credentials({.token = "first"}).Now().token, "first");
}

}  // namespace
}  // namespace leat::client
