// SPDX-License-Identifier: Apache-2.0
//
// Tests certificates that are wrong in various ways, and files that are
// replaced.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/clock.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/process/file_watch.h"
#include "rpc/process/process.h"
#include "rpc/tls/server_tls.h"
#include "tests/rpc/certificate_maker.h"

namespace leat::rpc {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDay = hours(24);

WallTime InDays(int days) { return Clock::Real().WallNow() + days * kDay; }

std::string Error(const absl::Status& status) {
  return status.ok() ? "" : std::string(Message(status));
}

TEST(CheckTls, AChainBeginsWithTheServersOwn) {
  const MadeCertificate root({.name = "root", .names = "", .authority = true});
  const MadeCertificate middle(
      {.name = "middle", .names = "", .authority = true}, &root);
  const MadeCertificate own({}, &middle), other({.name = "other"}, &root);
  const auto check = [&](const std::string& chain) {
    return Error(CheckTls({.cert_pem = chain, .key_pem = own.key_pem()}));
  };
  EXPECT_EQ(check(own.pem()), "");
  EXPECT_EQ(check(own.pem() + middle.pem()), "");
  EXPECT_EQ(check(own.pem() + middle.pem() + root.pem()), "");
  EXPECT_THAT(check(middle.pem() + own.pem()),
              AllOf(HasSubstr("--tls-cert"), HasSubstr("certificate 2")));
  EXPECT_THAT(check(own.pem() + root.pem() + middle.pem()),
              HasSubstr("certificate 2 did not issue certificate 1"));
  EXPECT_THAT(check(own.pem() + middle.pem() + other.pem()),
              HasSubstr("certificate 3 did not issue certificate 2"));
  EXPECT_THAT(check(other.pem()), HasSubstr("not the key of --tls-cert"));
}

TEST(CheckTls, ACertificateIsForSomeHost) {
  const MadeCertificate own({.names = ""});
  EXPECT_THAT(
      Error(CheckTls({.cert_pem = own.pem(), .key_pem = own.key_pem()})),
      HasSubstr("subjectAltName"));
}

// gRPC would take it, and every caller's handshake would fail.
TEST(CheckTls, AKeyThatIsTooShortForThisMachineIsRefused) {
  const MadeCertificate root({.names = "", .authority = true});
  const MadeCertificate weak({.rsa_bits = 512}, &root);
  EXPECT_THAT(
      Error(CheckTls({.cert_pem = weak.pem(), .key_pem = weak.key_pem()})),
      HasSubstr("--tls-cert: certificate 1: OpenSSL refuses it here: ee key "
                "too small"));
  const MadeCertificate middle(
      {.names = "", .authority = true, .rsa_bits = 512}, &root);
  const MadeCertificate own({}, &middle);
  EXPECT_THAT(Error(CheckTls({.cert_pem = own.pem() + middle.pem(),
                              .key_pem = own.key_pem()})),
              HasSubstr("certificate 2: OpenSSL refuses it here: ca key too "
                        "small"));
}

TEST(CheckDates, SayWhatIsExpiredOrNotYetValid) {
  const MadeCertificate root({.names = "", .to = 10 * kDay, .authority = true});
  const MadeCertificate own({.to = 2 * kDay}, &root);
  const Security security = {.cert_pem = own.pem() + root.pem()};
  EXPECT_EQ(Error(CheckDates(security, InDays(1))), "");
  EXPECT_THAT(Error(CheckDates(security, InDays(3))),
              HasSubstr("certificate 1 expired at 2"));
  EXPECT_THAT(Error(CheckDates(security, InDays(-1))),
              HasSubstr("certificate 1 is valid from 2"));
  EXPECT_THAT(Error(CheckDates({.cert_pem = root.pem()}, InDays(11))),
              HasSubstr("its certificate expired"));
}

TEST(FirstToExpire, HasBothTimesOfTheCertificateThatEndsFirst) {
  const MadeCertificate root(
      {.names = "", .from = -5 * kDay, .to = 2 * kDay, .authority = true});
  const MadeCertificate own({.from = -kDay, .to = 10 * kDay}, &root);
  const auto first = FirstToExpire({.cert_pem = own.pem() + root.pem()});
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(first->end, InDays(1));
  EXPECT_LT(first->end, InDays(3));
  ASSERT_TRUE(first->begin.has_value());
  EXPECT_EQ(first->end - *first->begin, 7 * kDay);
  EXPECT_EQ(FirstToExpire({}), std::nullopt);
  // The times exceed the range of nanoseconds since 1970.
  const MadeCertificate endless(
      {.from = -60 * 365 * kDay, .to = 400 * 365 * kDay});
  EXPECT_EQ(Error(CheckDates({.cert_pem = endless.pem()}, InDays(1))), "");
  const auto term = FirstToExpire({.cert_pem = endless.pem()});
  EXPECT_GT(term->end, InDays(100 * 365));
  EXPECT_EQ(term->begin, WallTime());
}

TEST(CheckName, ACertificateIsForTheNameThatCallersAreTold) {
  const MadeCertificate own(
      {.names = "DNS:node1,DNS:*.pods.example,IP:10.0.0.7"}),
      v6({.names = "IP:::1"});
  const auto check = [](const MadeCertificate& shown, const char* address) {
    return Error(CheckName({.cert_pem = shown.pem()}, address));
  };
  for (const char* good : {"node1:7411", "10-1-2-3.pods.example:1",
                           "10.0.0.7:7411", "unix:/run/leat.sock"})
    EXPECT_EQ(check(own, good), "") << good;
  EXPECT_EQ(check(v6, "[::1]:7411"), "");
  EXPECT_EQ(Error(CheckName({}, "node2:1")), "");
  for (const char* other : {"node2:7411", "10.0.0.8:1", "a.b.pods.example:1"})
    EXPECT_THAT(check(own, other),
                AllOf(HasSubstr("it is for DNS:node1, DNS:*.pods.example, IP "
                                "Address:10.0.0.7"),
                      HasSubstr("callers are told "), HasSubstr("--advertise")))
        << other;
}

TEST(ServerTls, AnExpiredOneLeavesTheLastGoodOne) {
  const MadeCertificate good({}), expired({.from = -2 * kDay, .to = -kDay});
  const Security first = {.cert_pem = good.pem(), .key_pem = good.key_pem()};
  const auto tls = ServerTls::Create(first);
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_THAT(Error((*tls)->Replace(
                  {.cert_pem = expired.pem(), .key_pem = expired.key_pem()})),
              HasSubstr("expired"));
  EXPECT_TRUE((*tls)->Replace(first).ok());
}

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    fs::create_directories(folder_);
    Write("a.pem", "1");
  }
  ~FileWatchTest() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  const fs::path folder_ =
      fs::path(::testing::TempDir()) / fmt::format("leat_watch_{}", getpid());
};

TEST_F(FileWatchTest, SeesEachWayToReplaceAFile) {
  FileWatch watch({folder_ / "a.pem", "", folder_ / "b.pem"});
  ASSERT_GE(watch.fd(), 0);
  EXPECT_FALSE(watch.Changed());
  Write("other", "x");
  EXPECT_FALSE(watch.Changed());
  Write("a.pem", "2");
  EXPECT_TRUE(watch.Changed());
  EXPECT_FALSE(watch.Changed());
  Write("new", "3");
  fs::rename(folder_ / "new", folder_ / "a.pem");
  EXPECT_TRUE(watch.Changed());
  fs::create_symlink("a.pem", folder_ / "b.pem");
  EXPECT_TRUE(watch.Changed());
  fs::create_directory_symlink("v2", folder_ / "..data_tmp");
  fs::rename(folder_ / "..data_tmp", folder_ / "..data");
  EXPECT_TRUE(watch.Changed());
  chmod((folder_ / "a.pem").c_str(), 0600);
  EXPECT_TRUE(watch.Changed());
}

TEST_F(FileWatchTest, WatchesNothingWithoutPaths) {
  EXPECT_EQ(FileWatch({"", ""}).fd(), -1);
  FileWatch missing({folder_ / "none" / "a.pem"});
  EXPECT_FALSE(missing.Changed());
}

TEST_F(FileWatchTest, AWaitReloadsOnceForFilesThatChangeTogether) {
  StopSignals signals;
  FileWatch watch({folder_ / "a.pem", folder_ / "b.pem"});
  Write("a.pem", "2");
  Write("b.pem", "2");
  int reloads = 0;
  EXPECT_EQ(signals.Wait(-1, &watch,
                         [&](bool asked) {
                           EXPECT_FALSE(asked);
                           ++reloads;
                           signals.Ask();
                         }),
            StopSignals::kAsked);
  EXPECT_EQ(reloads, 1);
}

}  // namespace
}  // namespace leat::rpc
