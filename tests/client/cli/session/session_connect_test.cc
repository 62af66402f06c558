// SPDX-License-Identifier: Apache-2.0
//
// The service that a command calls if nothing names one.
#include <vector>

#include "client/cli/base/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Without an address given, the CLI does not wait for a coordinator.
TEST(SessionConnect,
     TheDefaultAddressIsTriedForASecondAndNamesAPrivateService) {
  Shell shell;
  std::vector<absl::Duration> times;
  shell.connects = [&](const ConnectOptions& options) -> absl::Status {
    times.push_back(options.timeout);
    if (options.private_pid) return InvalidArgument("several: 7, 8");
    return Unavailable("no coordinator at {}", options.address);
  };
  EXPECT_EQ(shell.Run({"status"}), kCannotConnect);
  EXPECT_THAT(shell.err, HasSubstr("runs: see it by --private"));
  ASSERT_FALSE(times.empty());
  for (const absl::Duration time : times) EXPECT_LE(time, absl::Seconds(1));
  times.clear();
  EXPECT_EQ(shell.Run({"status", "--coordinator", "127.0.0.1:7411"}),
            kCannotConnect);
  EXPECT_EQ(times, std::vector<absl::Duration>{absl::Seconds(10)});
  EXPECT_THAT(shell.err, Not(HasSubstr("--private")));
}

// The error says what is wrong with a service that is named.
TEST(SessionConnect, OnlyTheDefaultAddressNeedsTheFlagThatNamesAnother) {
  Shell shell;
  shell.service.connect =
      Unavailable("127.0.0.5:17411 speaks TLS, and this caller does not");
  EXPECT_EQ(shell.Run({"status", "--coordinator", "127.0.0.5:17411"}),
            kCannotConnect);
  EXPECT_EQ(shell.err,
            "leat: status: 127.0.0.5:17411 speaks TLS, and this caller does "
            "not\n");
  EXPECT_EQ(shell.Run({"status"}), kCannotConnect);
  EXPECT_THAT(shell.err,
              HasSubstr("\nleat: no service is named, so the default address "
                        "was tried; --coordinator HOST:PORT or "
                        "LEAT_COORDINATOR names one\n"));
}

// A user of a private service has no coordinator to name.
TEST(SessionConnect, NoCoordinatorIsAnErrorOnlyWhereOneIsNamed) {
  Shell shell;
  shell.service.connect = Unavailable("nobody listens");
  shell.Run({"doctor", "-o", "json"});
  const Json json = Json::parse(shell.out);
  const Json& last = json["diagnoses"].back();
  EXPECT_EQ(last["code"], "COORDINATOR");
  EXPECT_EQ(last["severity"], "warn");
  EXPECT_EQ(last["evidence"],
            "no coordinator is named, and none answers at the default address "
            "127.0.0.1:7411");
  EXPECT_THAT(
      last["remedy"].get<std::string>(),
      HasSubstr("nothing is wrong for a script with a private service"));
  shell.variables = {{"LEAT_COORDINATOR", "a:1"}};
  EXPECT_EQ(shell.Run({"doctor"}), 6);
}

TEST(SessionConnect, ExaminesAPrivateServiceWhereNoCoordinatorIsNamed) {
  Shell shell;
  shell.connects = [](const ConnectOptions& options) {
    return options.private_pid ? absl::OkStatus()
                               : Unavailable("nobody listens");
  };
  shell.Run({"doctor"});
  EXPECT_THAT(shell.out, Not(HasSubstr("COORDINATOR")));
  EXPECT_THAT(shell.out, HasSubstr("VERSIONS"));
  EXPECT_EQ(shell.Run({"status"}), kCannotConnect);
  EXPECT_THAT(shell.err, HasSubstr("see it by --private"));
}

}  // namespace
}  // namespace leat::cli
