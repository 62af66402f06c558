// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/exit_code.h"
#include "client/cli/base/fields.h"
#include "core/cluster/roles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(AccessCommand, TheTokenAloneIsOnStdout) {
  Shell shell;
  EXPECT_EQ(shell.Run({"access", "create", "--role", "trainer", "--name",
                       "vision", "--expires", "90d"}),
            kGood)
      << shell.err;
  EXPECT_EQ(shell.out, "leat_0a1b2c3d_secret\n");
  EXPECT_THAT(shell.err, HasSubstr("0a1b2c3d \"vision\" of role trainer"));
  EXPECT_THAT(shell.service.calls,
              ElementsAre("access-create trainer vision 2160h"));
}

TEST(AccessCommand, WithoutATimeItDoesNotExpire) {
  Shell shell;
  EXPECT_EQ(shell.Run({"access", "create", "--role", "worker"}), kGood);
  EXPECT_THAT(shell.service.calls, ElementsAre("access-create worker  0"));
}

TEST(AccessCommand, WhatIsMissingOrWrongIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"access"}, "ACTION"},
      {{"access", "make"}, "ACTION"},
      {{"access", "create"}, "--role"},
      {{"access", "create", "--role", "root"}, "--role"},
      {{"access", "create", "--role", "viewer", "--expires", "90"}, "90d"},
      {{"access", "create", "--role", "viewer", "--expires", "-1h"}, "90d"},
      {{"access", "create", "--role", "viewer", "--expires", "d"}, "90d"},
      // As "$(cat lifetime)" is where there is no such file.
      {{"access", "create", "--role", "viewer", "--expires", ""},
       "--expires \"\": want"},
      {{"access", "revoke"}, "an id or a name"},
  };
  for (const auto& [command, part] : table) {
    Shell shell;
    EXPECT_EQ(shell.Run(command), kWrongUse) << part;
    EXPECT_THAT(shell.err, HasSubstr(part));
    EXPECT_THAT(shell.service.calls, IsEmpty());
  }
}

TEST(AccessCommand, TokensAreListedWithTheirStates) {
  Shell shell;
  shell.service.answers["tokens"] = R"({"tokens": [
    {"id": "0a1b2c3d", "name": "vision", "role": "trainer",
     "created_at": "2026-01-01T00:00:00Z",
     "expires_at": "2026-02-01T00:00:00Z"},
    {"id": "99999999", "name": "nodes", "role": "worker",
     "created_at": "2026-01-01T00:00:00Z"}]})";
  EXPECT_EQ(shell.Run({"access", "list"}), kGood) << shell.err;
  for (const char* part : {"0a1b2c3d", "vision", "trainer", "expired",
                           "99999999", "never", "valid"})
    EXPECT_THAT(shell.out, HasSubstr(part));
  EXPECT_EQ(shell.Run({"access", "list", "-o", "csv"}), kGood);
  EXPECT_EQ(shell.out,
            "ID,NAME,ROLE,CREATED,EXPIRES,STATE\n"
            "0a1b2c3d,vision,trainer,2026-01-01T00:00:00Z,"
            "2026-02-01T00:00:00Z,expired\n"
            "99999999,nodes,worker,2026-01-01T00:00:00Z,never,valid\n");
  EXPECT_EQ(shell.Run({"access", "list", "-o", "name"}), kGood);
  EXPECT_EQ(shell.out, "0a1b2c3d\n99999999\n");
  EXPECT_EQ(shell.Run({"access", "revoke", "vision"}), kGood);
  EXPECT_EQ(shell.service.calls.back(), "revoke-token vision");
}

TEST(AccessCommand, RolesNeedNoService) {
  Shell shell;
  EXPECT_EQ(shell.Run({"access", "roles", "-o", "name"}), kGood);
  EXPECT_THAT(shell.out, HasSubstr("AdminService/GetStatus\n"));
  EXPECT_THAT(shell.out, Not(HasSubstr("|")));
  EXPECT_EQ(shell.Run({"access", "roles", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell.out)["methods"][0]["roles"].back(), "operator");
  EXPECT_EQ(shell.Run({"access", "roles"}), kGood);
  EXPECT_EQ(shell.out, MethodTable());
  EXPECT_THAT(shell.service.calls, IsEmpty());
}

}  // namespace
}  // namespace leat::cli
