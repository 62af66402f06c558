// SPDX-License-Identifier: Apache-2.0
#include "rpc/daemon/daemon_flags.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "CLI/CLI.hpp"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/daemon/daemon_life.h"
#include "rpc/process/flag_file.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

std::string FileOf(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CompleteSecurity, TakesTheTokenOfTheFileBeforeTheEnvironments) {
  Security security;
  ASSERT_EQ(CompleteSecurity({}, "fedcba9876543210", nullptr, &security),
            absl::OkStatus());
  EXPECT_EQ(security.token, "fedcba9876543210");
  const DaemonFlags flags{.access_token_file = FileOf("token", kToken),
                          .insecure = true};
  ASSERT_EQ(CompleteSecurity(flags, "", nullptr, &security), absl::OkStatus());
  EXPECT_EQ(security.token, kToken);
  EXPECT_TRUE(security.insecure);
}

TEST(CompleteSecurity, NamesWhatIsWrong) {
  const auto error = [](const DaemonFlags& flags,
                        const std::optional<std::string>& token,
                        const char* leat_token) {
    Security security;
    const absl::Status status =
        CompleteSecurity(flags, token, leat_token, &security);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(error({}, "", nullptr),
              HasSubstr("LEAT_ACCESS_TOKEN is set and empty"));
  EXPECT_THAT(error({}, "short", nullptr), HasSubstr("LEAT_ACCESS_TOKEN"));
  EXPECT_THAT(error({}, std::nullopt, kToken), HasSubstr("LEAT_TOKEN"));
  EXPECT_THAT(error({.san_roles = {"nobody"}}, std::nullopt, nullptr),
              HasSubstr("nobody"));
}

TEST(ReadSecurity, LeavesWhatWasThereIfAFileCannotBeRead) {
  Security security;
  security.token = kToken;
  EXPECT_EQ(
      ReadSecurity({.access_token_file = "/no/such/file"}, &security).code(),
      absl::StatusCode::kNotFound);
  EXPECT_EQ(security.token, kToken);
}

TEST(CheckConnectionFlags, RefusesNumbersBelowZero) {
  EXPECT_EQ(CheckConnectionFlags(0, 5), absl::OkStatus());
  EXPECT_THAT(Message(CheckConnectionFlags(0, -1)),
              HasSubstr("--max-connections-per-address -1: want 0 or more"));
}

TEST(CheckListeners, JudgesBothAddresses) {
  EXPECT_EQ(CheckListeners({}, "127.0.0.1:0", ""), absl::OkStatus());
  EXPECT_EQ(CheckListeners({}, "127.0.0.1:0", "8080"), absl::OkStatus());
  EXPECT_EQ(CheckListeners({}, "0.0.0.0:0", "").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckListeners({}, "127.0.0.1:0", "0.0.0.0:80").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckListeners, JudgesTheFilesOfTlsAndNamesThem) {
  const std::string path = FileOf("no.pem", "no certificate");
  DaemonFlags flags{.tls = {.cert = path, .key = path}};
  Security security;
  ASSERT_EQ(CompleteSecurity(flags, std::nullopt, nullptr, &security),
            absl::OkStatus());
  const absl::Status bad = CheckListeners(security, "127.0.0.1:0", "");
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(bad), fmt::format("--tls-cert {}: want a certificate in "
                                      "PEM",
                                      path));
  flags.tls = {.ca = path};
  ASSERT_EQ(ReadSecurity(flags, &security), absl::OkStatus());
  EXPECT_EQ(Message(CheckListeners(security, "127.0.0.1:0", "")),
            fmt::format("--tls-ca {}: want certificates in PEM", path));
}

constexpr DaemonHelp kHelp = {.access_token_file = "a",
                              .tls_cert = "b",
                              .tls_key = "c",
                              .tls_ca = "d",
                              .insecure = "e",
                              .ready_fd = "f",
                              .lifeline_fd = "g"};

TEST(DaemonFlags, AreReadFromTheCommandLine) {
  DaemonFlags flags;
  CLI::App app("", "leat-test");
  AddConnectionFlags(kHelp, &app, &flags);
  AddConfinementFlag(&app, &flags);
  AddSecurityFlags(kHelp, &app, &flags);
  AddProcessFlags(kHelp, &app, &flags);
  FlagFile file(&app);
  std::string words[] = {
      "leat-test",    "--max-connections", "0070",       "--tls-cert",
      "cert.pem",     "--insecure",        "--ready-fd", "5",
      "--no-seccomp", "--log-level",       "warn"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  EXPECT_EQ(
      ParseCommandLine(&app, &file, static_cast<int>(argv.size()), argv.data()),
      std::nullopt);
  EXPECT_EQ(flags.max_connections, 70);
  EXPECT_EQ(flags.tls.cert, "cert.pem");
  EXPECT_TRUE(flags.insecure);
  EXPECT_EQ(flags.ready_fd, 5);
  EXPECT_TRUE(flags.no_seccomp);
  EXPECT_EQ(flags.log_level, "warn");
}

TEST(DaemonFlags, EndAWrongCommandLineWithCodeTwo) {
  DaemonFlags flags;
  CLI::App app("", "leat-test");
  AddProcessFlags(kHelp, &app, &flags);
  FlagFile file(&app);
  std::string words[] = {"leat-test", "--log-level", "loud"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
  EXPECT_EQ(ParseCommandLine(&app, &file, 3, argv), 2);
}

TEST(ReportReady, WritesTheAddressAndCloses) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  ReportReady({.ready_fd = fds[1]}, "127.0.0.1:5");
  char text[32] = {};
  EXPECT_EQ(read(fds[0], text, sizeof text), 12);
  EXPECT_STREQ(text, "127.0.0.1:5\n");
  EXPECT_EQ(read(fds[0], text, sizeof text), 0);
  close(fds[0]);
}

}  // namespace
}  // namespace leat::rpc
