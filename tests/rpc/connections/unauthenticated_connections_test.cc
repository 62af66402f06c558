// SPDX-License-Identifier: Apache-2.0
#include "rpc/connections/unauthenticated_connections.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

constexpr auto kNever = std::chrono::hours(1);

// Both ends of a connection over loopback.
class Connection {
 public:
  explicit Connection(int family = AF_INET) {
    const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage server{};
    server.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET)
      reinterpret_cast<sockaddr_in&>(server).sin_addr.s_addr =
          htonl(INADDR_LOOPBACK);
    else
      reinterpret_cast<sockaddr_in6&>(server).sin6_addr = in6addr_loopback;
    socklen_t size =
        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    auto* const name = reinterpret_cast<sockaddr*>(&server);
    client_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok_ = bind(listener, name, size) == 0 && listen(listener, 1) == 0 &&
          getsockname(listener, name, &size) == 0 &&
          connect(client_, name, size) == 0;
    size = sizeof peer_;
    server_ = accept4(listener, reinterpret_cast<sockaddr*>(&peer_), &size,
                      SOCK_CLOEXEC);
    close(listener);
  }
  ~Connection() {
    CloseServer();
    close(client_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool ok() const { return ok_ && server_ >= 0; }
  bool AddTo(UnauthenticatedConnections* unauthenticated) {
    return unauthenticated->Add(server_, peer_);
  }
  // Returns the client's end as gRPC names it.
  std::string peer() const {
    if (peer_.ss_family == AF_INET)
      return fmt::format(
          "ipv4:127.0.0.1:{}",
          ntohs(reinterpret_cast<const sockaddr_in&>(peer_).sin_port));
    return fmt::format(
        "ipv6:%5B::1%5D:{}",
        ntohs(reinterpret_cast<const sockaddr_in6&>(peer_).sin6_port));
  }
  bool Send(size_t bytes) {
    const std::string text(bytes, 'x');
    return send(client_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Waits until the other end has been shut down.
  bool IsEnded() { return IsEndedWithin(20'000); }
  bool IsOpen() { return !IsEndedWithin(0); }
  int server() const { return server_; }
  void CloseServer() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }

 private:
  bool IsEndedWithin(int ms) {
    pollfd wait = {client_, POLLIN, 0};
    char byte;
    return poll(&wait, 1, ms) == 1 &&
           recv(client_, &byte, 1, MSG_DONTWAIT) <= 0;
  }

  int client_ = -1, server_ = -1;
  bool ok_ = false;
  sockaddr_storage peer_{};
};

TEST(UnauthenticatedConnections, WhoShowsNothingInTimeIsShutDown) {
  const auto unauthenticated =
      UnauthenticatedConnections::Start({.time = std::chrono::milliseconds(50)})
          .value();
  Connection late;
  ASSERT_TRUE(late.ok());
  ASSERT_TRUE(late.AddTo(unauthenticated.get()));
  EXPECT_TRUE(late.IsEnded());
  EXPECT_EQ(unauthenticated->counters().late, 1u);
  // Later ones are also reset.
  Connection next;
  ASSERT_TRUE(next.AddTo(unauthenticated.get()));
  EXPECT_TRUE(next.IsEnded());
}

TEST(UnauthenticatedConnections, WhoSendsMoreThanABoundIsShutDown) {
  const auto unauthenticated =
      UnauthenticatedConnections::Start({.time = kNever, .bytes = 100}).value();
  Connection small, large;
  ASSERT_TRUE(small.AddTo(unauthenticated.get()));
  ASSERT_TRUE(large.AddTo(unauthenticated.get()));
  ASSERT_TRUE(small.Send(100));
  ASSERT_TRUE(large.Send(60));
  ASSERT_TRUE(large.Send(41));
  EXPECT_TRUE(large.IsEnded());
  EXPECT_TRUE(small.IsOpen());
  EXPECT_EQ(unauthenticated->counters().large, 1u);
}

TEST(UnauthenticatedConnections, WhoIsKnownIsLeftAlone) {
  for (const int family : {AF_INET, AF_INET6}) {
    const auto unauthenticated =
        UnauthenticatedConnections::Start({.time = kNever, .bytes = 100})
            .value();
    Connection known(family), other(family);
    if (!known.ok() && family == AF_INET6) GTEST_SKIP() << "no IPv6 here";
    ASSERT_TRUE(known.AddTo(unauthenticated.get()));
    ASSERT_TRUE(other.AddTo(unauthenticated.get()));
    for (const char* nobody : {"", "unix:", "ipv4:", "ipv4:127.0.0.1:x",
                               "ipv4:127.0.0.1:1", "ipv6:%5B::2%5D:1"})
      unauthenticated->Prove(nobody);
    EXPECT_EQ(unauthenticated->counters().proven, 0u);
    unauthenticated->Prove(known.peer());
    EXPECT_EQ(unauthenticated->counters().proven, 1u) << known.peer();
    ASSERT_TRUE(known.Send(1000));
    ASSERT_TRUE(other.Send(1000));
    EXPECT_TRUE(other.IsEnded());
    EXPECT_TRUE(known.IsOpen());
  }
}

TEST(UnauthenticatedConnections, TheOldestGivesWayOnceItHadItsTime) {
  const auto patient = UnauthenticatedConnections::Start(
                           {.time = kNever, .max = 2, .least_time = kNever})
                           .value();
  Connection a, b, c;
  ASSERT_TRUE(a.AddTo(patient.get()));
  ASSERT_TRUE(b.AddTo(patient.get()));
  EXPECT_FALSE(c.AddTo(patient.get()));
  EXPECT_TRUE(a.IsOpen());
  const auto strict = UnauthenticatedConnections::Start(
                          {.time = kNever, .max = 2, .least_time = Duration(0)})
                          .value();
  for (Connection* each : {&a, &b, &c}) ASSERT_TRUE(each->AddTo(strict.get()));
  EXPECT_TRUE(a.IsEnded());
  EXPECT_TRUE(b.IsOpen());
  EXPECT_EQ(strict->counters().crowded_out, 1u);
}

// A connection that its server has closed frees its slot and its descriptors.
TEST(UnauthenticatedConnections, WhoHasGoneIsForgotten) {
  const auto unauthenticated =
      UnauthenticatedConnections::Start(
          {.time = kNever, .max = 1, .least_time = kNever})
          .value();
  for (int i = 0; i < 3; ++i) {
    Connection gone;
    while (!gone.AddTo(unauthenticated.get())) {
      Connection waits;  // until the previous one is seen to have ended
    }
    shutdown(gone.server(), SHUT_RDWR);
    gone.CloseServer();
    EXPECT_TRUE(gone.IsEnded());
  }
  EXPECT_EQ(unauthenticated->counters().crowded_out, 0u);
}

TEST(UnauthenticatedConnections, UnixSocketsAreInsideTheMachine) {
  const auto unauthenticated =
      UnauthenticatedConnections::Start({.time = std::chrono::milliseconds(1)})
          .value();
  sockaddr_storage peer{};
  peer.ss_family = AF_UNIX;
  Connection late;
  ASSERT_TRUE(unauthenticated->Add(-1, peer));
  ASSERT_TRUE(late.AddTo(unauthenticated.get()));
  EXPECT_TRUE(late.IsEnded());
  EXPECT_EQ(unauthenticated->counters().late, 1u);
}

}  // namespace
}  // namespace leat::rpc
