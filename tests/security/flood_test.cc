// SPDX-License-Identifier: Apache-2.0
//
// Attacks on a coordinator by callers without credentials: it cuts them off,
// and needs as much memory afterwards as before.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "rpc/process/machine.h"
#include "server/daemon.h"
#include "tests/support/health.h"
#include "tests/support/sanitized.h"

namespace leat {
namespace {

constexpr uint64_t kMostGrowth = 32 << 20;
constexpr size_t kBytes = 256 << 10;  // UnauthenticatedOptions::bytes
// The most that the kernel may hold of one connection besides that.
constexpr size_t kInKernel = 16 << 20;

std::string Frame(size_t size, int type, int flags, uint32_t stream) {
  std::string head(9, '\0');
  for (int i = 0; i < 3; ++i)
    head[static_cast<size_t>(i)] = static_cast<char>(size >> (16 - 8 * i));
  head[3] = static_cast<char>(type);
  head[4] = static_cast<char>(flags);
  for (int i = 0; i < 4; ++i)
    head[static_cast<size_t>(5 + i)] =
        static_cast<char>(stream >> (24 - 8 * i));
  return head;
}

constexpr int kData = 0, kHeaders = 1, kReset = 3, kSettings = 4,
              kContinuation = 9, kEndHeaders = 4;

std::string Preface() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(0, kSettings, 0, 0);
}

// Encodes a POST to `path` over HTTP/2 with literals. `kept`: the connection's
// header table keeps them, and kKeptCall refers to all of them.
std::string CallHeaders(
    const std::string& path = "/leat.v1.CoordinatorService/Hello",
    bool kept = false) {
  std::string block;
  const std::pair<std::string, std::string> fields[] = {
      {":method", "POST"}, {":scheme", "http"},
      {":path", path},     {":authority", "x"},
      {"te", "trailers"},  {"content-type", "application/grpc"}};
  for (const auto& [name, value] : fields) {
    block += kept ? '\x40' : '\0';
    for (const std::string& text : {name, value}) {
      block += static_cast<char>(text.size());
      block += text;
    }
  }
  return block;
}

constexpr char kKeptCall[] = "\xc3\xc2\xc1\xc0\xbf\xbe";

// A caller's end of a connection, without gRPC.
class Caller {
 public:
  // Connects from 127.0.0.`from`.
  explicit Caller(int port, int from = 1)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{}, server{};
    own.sin_family = server.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(0x7f000000u + static_cast<uint32_t>(from));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons(static_cast<uint16_t>(port));
    ok_ =
        bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0 &&
        connect(fd_, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0;
  }
  ~Caller() {
    if (fd_ >= 0) close(fd_);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  bool ok() const { return ok_; }

  // Sends. False: the server has cut it off.
  bool Send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n =
          send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
      Drain();
    }
    return true;
  }
  // Waits until the server cuts it off. False: it did not within a minute.
  bool IsCutOff() {
    while (true) {
      pollfd wait = {fd_, POLLIN, 0};
      char bytes[4096];
      if (poll(&wait, 1, 60'000) != 1) return false;
      if (recv(fd_, bytes, sizeof bytes, 0) <= 0) return true;
    }
  }

 private:
  // Discards the server's data.
  void Drain() {
    char bytes[4096];
    while (recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
  }
  const int fd_;
  bool ok_ = false;
};

class FloodTest : public ::testing::Test {
 protected:
  void Start(rpc::UnauthenticatedOptions unauthenticated) {
    server::Config config;
    config.listen = "127.0.0.1:0";
    config.security.token = "the-operators-first-token";
    config.unauthenticated = unauthenticated;
    absl::StatusOr<std::unique_ptr<server::Daemon>> daemon =
        server::Daemon::Start(config, &Clock::Real());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    const std::string& address = daemon_->address();
    port_ = std::stoi(address.substr(address.rfind(':') + 1));
    ASSERT_TRUE(Health(address).ok());
    before_ = rpc::ResidentBytes();
  }
  // A caller that is cut off can send what the kernel takes, and no more.
  template <class Next>
  void CutsOff(Caller* caller, const Next& next) {
    ASSERT_TRUE(caller->ok());
    size_t sent = 0;
    for (std::string bytes = Preface(); caller->Send(bytes); bytes = next()) {
      sent += bytes.size();
      ASSERT_LE(sent, kBytes + kInKernel);
    }
  }
  // Memory is released soon, not at once, and the same holds for the quota of
  // health calls that all unknown callers share.
  void ServesAndHasNotGrown() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    auto health = Health(daemon_->address());
    while (!health.ok() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(50));
      health = Health(daemon_->address());
    }
    EXPECT_TRUE(health.ok()) << health.status();
    if (testing::kSanitized) return;
    while (rpc::ResidentBytes() > before_ + kMostGrowth &&
           absl::Now() < deadline)
      absl::SleepFor(absl::Milliseconds(50));
    EXPECT_LE(rpc::ResidentBytes(), before_ + kMostGrowth);
  }

  std::unique_ptr<server::Daemon> daemon_;
  int port_ = 0;
  uint64_t before_ = 0;
};

TEST_F(FloodTest, OfHeadersWithoutAnEnd) {
  Start({});
  for (int i = 0; i < 20; ++i) {
    Caller caller(port_);
    bool first = true;
    CutsOff(&caller, [&] {
      // A long literal value, in pieces that never end.
      const std::string piece(16'000, 'x');
      const std::string head =
          Frame(piece.size(), first ? kHeaders : kContinuation, 0, 1);
      first = false;
      return head + piece;
    });
  }
  ServesAndHasNotGrown();
}

TEST_F(FloodTest, OfStreamsThatAreResetAtOnce) {
  Start({});
  for (int i = 0; i < 20; ++i) {
    Caller caller(port_);
    uint32_t stream = 1;
    const std::string headers = CallHeaders();
    CutsOff(&caller, [&] {
      std::string bytes;
      for (int j = 0; j < 100; ++j, stream += 2)
        bytes += Frame(headers.size(), kHeaders, kEndHeaders, stream) +
                 headers + Frame(4, kReset, 0, stream) +
                 std::string("\0\0\0\x08", 4);
      return bytes;
    });
  }
  ServesAndHasNotGrown();
}

// A connection makes as many calls as it may, each of the fewest bytes, whose
// messages do not come. gRPC does not limit streams of callers that do not
// confirm the limit, and a call that waits for its message holds 20 KB. So each
// is refused by its headers; only few health calls may wait.
TEST_F(FloodTest, OfCallsThatStayOpen) {
  Start({.time = std::chrono::milliseconds(500)});
  for (const char* path :
       {"/leat.v1.CoordinatorService/Hello", "/grpc.health.v1.Health/Check",
        "/leat.v1.CoordinatorService/WorkerSession", "/no.Service/Method"}) {
    std::string flood = Preface();
    for (uint32_t stream = 1; flood.size() < kBytes; stream += 2) {
      const std::string headers =
          stream == 1 ? CallHeaders(path, /*kept=*/true) : kKeptCall;
      flood += Frame(headers.size(), kHeaders, kEndHeaders, stream) + headers;
    }
    flood.resize(kBytes);
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < 2; ++i) {
      callers.push_back(std::make_unique<Caller>(port_));
      callers.back()->Send(flood);
    }
    uint64_t most = 0;
    for (const auto& caller : callers) {
      ASSERT_TRUE(caller->IsCutOff());
      most = std::max(most, rpc::ResidentBytes());
    }
    // This is memory of calls being refused; it would be 300 MB and more if it
    // stayed.
    if (!testing::kSanitized) {
      EXPECT_LE(most, before_ + 5 * kMostGrowth) << path;
    }
  }
  ServesAndHasNotGrown();
}

TEST_F(FloodTest, OfBodiesThatDoNotCome) {
  Start({.time = std::chrono::milliseconds(500)});
  const std::string headers = CallHeaders();
  const std::string begun =
      Preface() + Frame(headers.size(), kHeaders, kEndHeaders, 1) + headers +
      Frame(1, kData, 0, 1) + std::string(1, '\0');
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 100; ++i) {
    callers.push_back(std::make_unique<Caller>(port_));
    ASSERT_TRUE(callers.back()->Send(begun));
  }
  for (const auto& caller : callers) ASSERT_TRUE(caller->IsCutOff());
  ServesAndHasNotGrown();
}

// A caller closes its end once it is cut off. This process is also the daemon,
// so descriptors of both ends would run out where gRPC is slow to close its
// own.
TEST_F(FloodTest, OfConnectionsThatSayNothing) {
  constexpr size_t kMost = 256, kOpen = 512;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  Start({.time = std::chrono::seconds(2),
         .max = kMost,
         .least_time = Duration::zero()});
  const int idle =
      static_cast<int>(std::min<rlim_t>(10'000, limit.rlim_cur / 2));
  std::deque<Caller> callers;
  for (int i = 0; i < idle; ++i) {
    ASSERT_TRUE(callers.emplace_back(port_, 1 + i % 100).ok()) << i;
    if (callers.size() < kOpen) continue;
    ASSERT_TRUE(callers.front().IsCutOff()) << i;
    callers.pop_front();
  }
  const auto health = Health(daemon_->address());
  EXPECT_TRUE(health.ok()) << health.status();
  for (Caller& caller : callers) ASSERT_TRUE(caller.IsCutOff());
  ServesAndHasNotGrown();
}

}  // namespace
}  // namespace leat
