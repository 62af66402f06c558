// SPDX-License-Identifier: Apache-2.0
#include "rpc/connections/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "rpc/connections/listener.h"

namespace leat::rpc {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

// A client's end of a connection to 127.0.0.1, from `source`.
class Client {
 public:
  explicit Client(const Acceptor& acceptor, const char* source = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    name_.sin_family = AF_INET;
    inet_pton(AF_INET, source, &name_.sin_addr);
    bind(fd_, reinterpret_cast<sockaddr*>(&name_), sizeof name_);
    socklen_t size = sizeof name_;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&name_), &size);
    acceptor.ListensAt(&server_, &server_size_);
  }
  ~Client() { Close(); }
  bool Connect() {
    return connect(fd_, reinterpret_cast<sockaddr*>(&server_), server_size_) ==
           0;
  }
  sockaddr_storage name() const {
    sockaddr_storage name{};
    memcpy(&name, &name_, sizeof name_);
    return name;
  }
  // Returns whether the other end has closed it.
  bool IsClosed() {
    pollfd wait = {fd_, POLLIN, 0};
    char byte;
    return poll(&wait, 1, 20'000) == 1 && read(fd_, &byte, 1) <= 0;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  sockaddr_in name_{};
  sockaddr_storage server_{};
  socklen_t server_size_ = 0;
};

// Keeps the descriptors that the acceptor hands over, as gRPC would.
class Taker {
 public:
  Acceptor::Hand hand() {
    return [this](int, int fd, bool own) {
      MutexLock lock(&mu_);
      fds_.push_back(fd);
      owns_ += own ? 1 : 0;
      taken_.NotifyAll();
    };
  }
  bool AwaitTaken(size_t count) {
    const MonotonicTime deadline = Clock::Real().Now() + kPatience;
    MutexLock lock(&mu_);
    while (fds_.size() < count)
      if (!taken_.WaitUntil(&mu_, deadline)) return false;
    return true;
  }
  void CloseFirst(size_t count) {
    MutexLock lock(&mu_);
    for (size_t i = 0; i < count; ++i) close(fds_[i]);
    fds_.erase(fds_.begin(), fds_.begin() + static_cast<ptrdiff_t>(count));
  }
  int owns() {
    MutexLock lock(&mu_);
    return owns_;
  }
  ~Taker() {
    for (const int fd : fds_) close(fd);
  }

 private:
  Mutex mu_;
  CondVar taken_;
  std::vector<int> fds_;
  int owns_ = 0;
};

std::unique_ptr<Acceptor> StartAcceptor(AcceptorOptions options, Taker* taker) {
  return Acceptor::Start(
             Listener::Bind("127.0.0.1:0", std::chrono::seconds(10)).value(),
             std::move(options), taker->hand())
      .value();
}

TEST(Acceptor, WantOfDescriptorsAndMemoryIsOutlived) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    std::atomic<int> failures = 5;
    AcceptorOptions options;
    options.shortest_rest = std::chrono::milliseconds(1);
    options.accept = [&](int fd, sockaddr* peer, socklen_t* size, int flags) {
      if (failures-- <= 0) return accept4(fd, peer, size, flags);
      errno = error;
      return -1;
    };
    Taker taker;
    const auto acceptor = StartAcceptor(options, &taker);
    Client early(*acceptor), late(*acceptor);
    ASSERT_TRUE(early.Connect());
    ASSERT_TRUE(taker.AwaitTaken(1)) << error;
    ASSERT_TRUE(late.Connect());
    ASSERT_TRUE(taker.AwaitTaken(2)) << error;
    EXPECT_EQ(acceptor->counters().rests, 5u) << error;
    EXPECT_EQ(acceptor->counters().accepted, 2u) << error;
    EXPECT_FALSE(acceptor->resting()) << error;
  }
}

TEST(Acceptor, AConnectionThatFailedAloneIsPassedOver) {
  std::atomic<bool> failed = false;
  AcceptorOptions options;
  options.accept = [&](int fd, sockaddr* peer, socklen_t* size, int flags) {
    if (failed.exchange(true)) return accept4(fd, peer, size, flags);
    errno = ECONNABORTED;
    return -1;
  };
  Taker taker;
  const auto acceptor = StartAcceptor(options, &taker);
  Client client(*acceptor);
  ASSERT_TRUE(client.Connect());
  ASSERT_TRUE(taker.AwaitTaken(1));
  EXPECT_EQ(acceptor->counters().rests, 0u);
}

TEST(Acceptor, ConnectionsOverTheCapAreClosedUntilOthersEnd) {
  AcceptorOptions options;
  options.max_connections = 3;
  options.look_interval = Duration::zero();
  Taker taker;
  const auto acceptor = StartAcceptor(options, &taker);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(*acceptor));
    ASSERT_TRUE(clients.back()->Connect());
  }
  ASSERT_TRUE(taker.AwaitTaken(3));
  for (int i = 0; i < 4; ++i) {
    Client over(*acceptor, "127.0.0.9");
    ASSERT_TRUE(over.Connect());
    EXPECT_TRUE(over.IsClosed());
  }
  EXPECT_EQ(acceptor->counters().refused_all, 4u);
  taker.CloseFirst(2);
  Client welcome(*acceptor), also(*acceptor), over(*acceptor);
  ASSERT_TRUE(welcome.Connect());
  ASSERT_TRUE(also.Connect());
  ASSERT_TRUE(taker.AwaitTaken(3));
  ASSERT_TRUE(over.Connect());
  EXPECT_TRUE(over.IsClosed());
  EXPECT_EQ(acceptor->counters().accepted, 5u);
}

TEST(Acceptor, AnAddressHasACapOfItsOwn) {
  AcceptorOptions options;
  options.max_connections_per_address = 2;
  Taker taker;
  const auto acceptor = StartAcceptor(options, &taker);
  Client first(*acceptor), second(*acceptor), third(*acceptor);
  Client other(*acceptor, "127.0.0.2");
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(second.Connect());
  ASSERT_TRUE(third.Connect());
  EXPECT_TRUE(third.IsClosed());
  ASSERT_TRUE(other.Connect());
  ASSERT_TRUE(taker.AwaitTaken(3));
  EXPECT_EQ(acceptor->counters().refused_address, 1u);
  EXPECT_EQ(acceptor->counters().refused_all, 0u);
}

TEST(Acceptor, ItsOwnProcessIsOutsideTheCaps) {
  AcceptorOptions options;
  options.max_connections = 1;
  Taker taker;
  const auto acceptor = StartAcceptor(options, &taker);
  Client first(*acceptor), own(*acceptor), stranger(*acceptor);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(taker.AwaitTaken(1));
  acceptor->Expect(own.name(), sizeof(sockaddr_in));
  ASSERT_TRUE(stranger.Connect());
  EXPECT_TRUE(stranger.IsClosed());
  ASSERT_TRUE(own.Connect());
  ASSERT_TRUE(taker.AwaitTaken(2));
  EXPECT_EQ(taker.owns(), 1);
}

TEST(Acceptor, StopRefusesWhoComesLater) {
  Taker taker;
  const auto acceptor = StartAcceptor({}, &taker);
  Client late(*acceptor);
  acceptor->Stop();
  EXPECT_FALSE(late.Connect());
  EXPECT_EQ(errno, ECONNREFUSED);
}

// Tests of sockets' names.

absl::StatusOr<Listener> Bind(const std::string& address) {
  return Listener::Bind(address, std::chrono::seconds(10));
}

TEST(Listener, FillsInThePort) {
  for (const std::string host :
       {"127.0.0.1", "[::1]", "localhost", "0.0.0.0"}) {
    const auto listener = Bind(host + ":0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(listener->address().starts_with(host + ":"));
    EXPECT_FALSE(listener->address().ends_with(":0"));
    EXPECT_EQ(Bind(listener->address()).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST(Listener, TakesASocketThatWasInherited) {
  const auto bound = Bind("unix-abstract:leat-inherited-test");
  ASSERT_TRUE(bound.ok()) << bound.status();
  const int inherited = dup(bound->sockets()[0]);
  {
    const auto listener = Bind(fmt::format("fd:{}", inherited));
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_EQ(listener->address(), "unix-abstract:leat-inherited-test");
    EXPECT_TRUE(listener->inherited());
    EXPECT_FALSE(bound->inherited());
  }
  EXPECT_EQ(fcntl(inherited, F_GETFD), -1) << "it is closed";
  const int file = open("/dev/null", O_RDONLY);
  const auto tcp = Bind("127.0.0.1:0");
  ASSERT_TRUE(tcp.ok());
  const int other = dup(tcp->sockets()[0]);
  for (const std::string& wrong :
       {std::string("fd:"), std::string("fd:x"), std::string("fd:-1"),
        std::string("fd:99999"), fmt::format("fd:{}", file),
        fmt::format("fd:{}", other)}) {
    const absl::Status status = Bind(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << wrong;
    EXPECT_NE(Message(status).find("inherited"), std::string_view::npos);
    EXPECT_NE(Message(status).find(wrong), std::string_view::npos);
  }
  EXPECT_NE(fcntl(other, F_GETFD), -1) << "what is not taken stays open";
  close(file);
  close(other);
}

TEST(Listener, SaysWhyItCannot) {
  const auto taken = Bind("unix-abstract:leat-listener-test");
  ASSERT_TRUE(taken.ok()) << taken.status();
  for (const auto& [address, reason] :
       std::vector<std::pair<std::string, std::string>>{
           {"unix-abstract:leat-listener-test", "in use"},
           {"unix-abstract:", "name"},
           {"unix:" + std::string(200, 'x'), "name"},
           {"unix:/no/such/folder/socket", "No such file"},
           {"127.0.0.1", "port"},
           {"127.0.0.1:", "port"},
           {"no.such.host.invalid:80", ""}}) {
    const absl::Status status = Bind(address).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_NE(Message(status).find(address), std::string_view::npos) << status;
    EXPECT_NE(Message(status).find(reason), std::string_view::npos) << status;
  }
}

TEST(Listener, ASocketsFileIsTakenOverOnlyFromTheDead) {
  const std::string path = testing::TempDir() + "/leat-listener.sock";
  std::filesystem::remove(path);
  {
    const auto first = Bind("unix:" + path);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_FALSE(Bind("unix:" + path).ok());
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // The state that a killed process leaves.
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  close(fd);
  EXPECT_TRUE(Bind("unix://" + path).ok());
  std::ofstream(path) << "not a socket";
  EXPECT_FALSE(Bind("unix:" + path).ok());
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

TEST(CheckListenAddress, SaysWhatIsWrongWithAnAddress) {
  for (const char* good : {"127.0.0.1:0", "0.0.0.0:7411", "[::]:7411", "a.b:1",
                           "unix:/tmp/x", "unix-abstract:x"})
    EXPECT_TRUE(CheckListenAddress(good).ok()) << good;
  for (const auto& [bad, why] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "it is empty"},
           {"foo", "it has no port"},
           {":7411", "it has no host"},
           {"http://a:1", "it is a URL"},
           {"::1:7411", "in brackets"},
           {"a:", "its port"},
           {"a:b", "its port"},
           {"a:65536", "its port"},
           {"a:-1", "its port"}}) {
    const absl::Status status = CheckListenAddress(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace leat::rpc
