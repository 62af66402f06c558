// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/service_notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <optional>

#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The manager's end: an abstract datagram socket, named by the kernel.
class ServiceNotifierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd_, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_EQ(
        bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)),
        0);
    socklen_t length = sizeof address;
    ASSERT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length),
              0);
    settings_.socket.assign(address.sun_path,
                            length - offsetof(sockaddr_un, sun_path));
    settings_.socket[0] = '@';
  }
  void TearDown() override { close(fd_); }

  // Returns the next datagram, if any; it has arrived when Send returns.
  std::optional<std::string> Received() {
    char bytes[4096];
    const ssize_t size = recv(fd_, bytes, sizeof bytes, 0);
    if (size < 0) return std::nullopt;
    return std::string(bytes, static_cast<size_t>(size));
  }

  int fd_ = -1;
  NotifySettings settings_;
  FakeClock clock_;
};

NotifySettings ReadFrom(std::map<std::string, std::string> environment) {
  return NotifySettings::Read(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      /*pid=*/7);
}

TEST_F(ServiceNotifierTest, SaysEachStepOfADaemonsLife) {
  ServiceNotifier notifier(settings_, &clock_);
  notifier.Ready("serving");
  EXPECT_EQ(Received(), "READY=1\nSTATUS=serving\n");
  notifier.Status("two\nlines");
  EXPECT_EQ(Received(), "STATUS=two lines\n");
  notifier.Reloading();  // a FakeClock begins at one hour
  EXPECT_EQ(Received(), "RELOADING=1\nMONOTONIC_USEC=3600000000\n");
  notifier.Stopping("draining");
  EXPECT_EQ(Received(), "STOPPING=1\nSTATUS=draining\n");
  EXPECT_EQ(Received(), std::nullopt);
}

TEST_F(ServiceNotifierTest, IsAliveOnlyForAWatchdog) {
  ServiceNotifier(settings_, &clock_).Alive();
  EXPECT_EQ(Received(), std::nullopt);
  settings_.watchdog = seconds(30);
  ServiceNotifier(settings_, &clock_).Alive();
  EXPECT_EQ(Received(), "WATCHDOG=1\n");
}

TEST_F(ServiceNotifierTest, AsksOftenEnoughForTheWatchdog) {
  EXPECT_EQ(ServiceNotifier(settings_, &clock_).WatchdogInterval(seconds(0)),
            seconds(0));
  settings_.watchdog = seconds(30);
  const ServiceNotifier notifier(settings_, &clock_);
  EXPECT_EQ(notifier.WatchdogInterval(milliseconds(500)), milliseconds(500));
  EXPECT_EQ(notifier.WatchdogInterval(seconds(40)), seconds(10));
  EXPECT_EQ(notifier.WatchdogInterval(seconds(0)), seconds(10));
}

TEST_F(ServiceNotifierTest, GoesOnWithoutAManager) {
  ServiceNotifier nobody({}, &clock_);
  nobody.Ready("serving");
  for (const std::string& socket :
       {std::string("/nowhere/at/all"), std::string("relative"),
        std::string("@"), "/" + std::string(200, 'x')}) {
    settings_.socket = socket;
    ServiceNotifier notifier(settings_, &clock_);
    notifier.Ready("serving");
  }
  EXPECT_EQ(Received(), std::nullopt);
}

TEST(NotifySettings, AreWhatSystemdPutsIntoTheEnvironment) {
  EXPECT_EQ(ReadFrom({}).socket, "");
  const NotifySettings plain = ReadFrom({{"NOTIFY_SOCKET", "/run/notify"}});
  EXPECT_EQ(plain.socket, "/run/notify");
  EXPECT_EQ(plain.watchdog, seconds(0));
  const auto watchdog = [](const char* us, const char* pid) {
    return ReadFrom({{"NOTIFY_SOCKET", "@x"},
                     {"WATCHDOG_USEC", us},
                     {"WATCHDOG_PID", pid}})
        .watchdog;
  };
  EXPECT_EQ(watchdog("30000000", "7"), seconds(30));
  EXPECT_EQ(watchdog("30000000", "8"), seconds(0));  // of another process
  for (const char* bad : {"", "-1", "0", "30s", "99999999999999999999"})
    EXPECT_EQ(watchdog(bad, "7"), seconds(0)) << bad;
  EXPECT_EQ(
      ReadFrom({{"NOTIFY_SOCKET", "@x"}, {"WATCHDOG_USEC", "5"}}).watchdog,
      std::chrono::microseconds(5));
}

}  // namespace
}  // namespace leat::rpc
