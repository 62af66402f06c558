// SPDX-License-Identifier: Apache-2.0
//
// Tests servers whose certificates are wrong in various ways, and peers that
// are not servers.
#include "rpc/tls/tls_probe.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/server/server.h"
#include "tests/rpc/certificate_maker.h"

namespace leat::rpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsProbeTest : public ::testing::Test {
 protected:
  // Returns its port.
  std::string Serve(Security security) {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    auto server = Server::Start(options, security, {&service_});
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return "1";
    servers_.push_back(*std::move(server));
    const std::string& address = servers_.back()->address();
    return address.substr(address.rfind(':') + 1);
  }
  std::string Shows(const MadeCertificate& own) {
    return "localhost:" +
           Serve({.cert_pem = own.pem(), .key_pem = own.key_pem()});
  }
  std::string Trouble(const std::string& address, const Security& caller) {
    return TlsTrouble(address, caller, seconds(5));
  }

  const MadeCertificate root_{{.name = "root", .names = "", .authority = true}};
  v1::WorkerService::CallbackService service_;  // outlives the servers
  const Security caller_ = {.ca_pem = root_.pem()};
  std::vector<std::unique_ptr<Server>> servers_;
};

TEST_F(TlsProbeTest, AGoodOneIsNoFailure) {
  const MadeCertificate own({}, &root_);
  const std::string address = Shows(own);
  EXPECT_EQ(Trouble(address, caller_), "");
  const auto probe = ProbeTls(address, caller_, seconds(5));
  ASSERT_TRUE(probe.has_value());
  EXPECT_THAT(probe->what, HasSubstr("shows a certificate for DNS:localhost"));
}

TEST_F(TlsProbeTest, SaysWhatTheServerShows) {
  const MadeCertificate own({}, &root_), other({.name = "other"}),
      old({.from = -hours(48), .to = -hours(24)}, &root_),
      young({.from = hours(24), .to = hours(48)}, &root_);
  std::string port = Shows(own).substr(sizeof("localhost:") - 1);
  EXPECT_THAT(Trouble("127.0.0.1:" + port, caller_),
              AllOf(HasSubstr("for DNS:localhost, and not for 127.0.0.1"),
                    HasSubstr("call it by one of its names")));
  EXPECT_THAT(Trouble(Shows(other), caller_),
              AllOf(HasSubstr("no authority"), HasSubstr("--tls-ca")));
  EXPECT_THAT(Trouble(Shows(old), caller_), HasSubstr("has expired: replace"));
  EXPECT_THAT(Trouble(Shows(young), caller_), HasSubstr("clocks"));
}

TEST_F(TlsProbeTest, SaysWhatTheServerWantsOfItsCaller) {
  const MadeCertificate own({}, &root_), good({.name = "good"}, &root_),
      stranger({.name = "stranger"}),
      old({.name = "old", .from = -hours(48), .to = -hours(24)}, &root_);
  const std::string address = "localhost:" + Serve({.ca_pem = root_.pem(),
                                                    .cert_pem = own.pem(),
                                                    .key_pem = own.key_pem()});
  const auto as = [&](const MadeCertificate& caller) {
    return Trouble(address, {.ca_pem = root_.pem(),
                             .cert_pem = caller.pem(),
                             .key_pem = caller.key_pem()});
  };
  EXPECT_EQ(as(good), "");
  EXPECT_THAT(Trouble(address, caller_),
              AllOf(HasSubstr("wants a certificate"), HasSubstr("--tls-cert")));
  EXPECT_THAT(as(stranger),
              AllOf(HasSubstr("refuses the certificate of this caller: show"),
                    HasSubstr("an authority of its --tls-ca")));
  EXPECT_THAT(as(old), HasSubstr("its certificate expired at 2"));
}

TEST_F(TlsProbeTest, BothSidesSpeakPlaintextOrTls) {
  const MadeCertificate own({}, &root_);
  EXPECT_THAT(Trouble("127.0.0.1:" + Serve({}), caller_),
              HasSubstr("does not speak TLS"));
  EXPECT_EQ(Trouble("127.0.0.1:" + Serve({}), {}), "");
  EXPECT_THAT(Trouble(Shows(own), {}),
              AllOf(HasSubstr("speaks TLS, and this caller does not"),
                    HasSubstr("--tls-ca")));
}

TEST_F(TlsProbeTest, WhoDoesNotAnswerIsNoFailure) {
  for (const char* address : {"127.0.0.1:1", "unix:/tmp/none", "no-port",
                              "no.such.host.invalid:1", "[::1]:1", ""})
    EXPECT_EQ(ProbeTls(address, caller_, seconds(1)), std::nullopt) << address;
}

// Listens, and treats its callers as a test wants.
class Odd {
 public:
  explicit Odd(std::function<void(int fd)> answer)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
    listen(fd_, 8);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] {
      for (int caller; (caller = accept(fd_, nullptr, nullptr)) >= 0;) {
        answer(caller);
        close(caller);
      }
    });
  }
  ~Odd() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  const int fd_;
  int port_ = 0;
  std::thread thread_;
};

// Listens, and accepts no connection any more.
class Full {
 public:
  Full() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
    listen(fd_, 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    for (int& caller : callers_) {
      caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      connect(caller, reinterpret_cast<sockaddr*>(&at), size);
    }
  }
  ~Full() {
    for (const int caller : callers_) close(caller);
    close(fd_);
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  const int fd_;
  int port_ = 0;
  int callers_[4] = {};
};

TEST_F(TlsProbeTest, WhatHindersSaysWhetherTimeMayMendIt) {
  const MadeCertificate own({}, &root_);
  const auto of = [&](const std::string& address, const Security& caller) {
    return WhatHinders(address, caller, seconds(10));
  };
  EXPECT_EQ(of(Shows(own), caller_).what, "");
  EXPECT_EQ(of("unix:/tmp/none", {}).what, "");
  const Security wants = {
      .ca_pem = root_.pem(), .cert_pem = own.pem(), .key_pem = own.key_pem()};
  for (const Hindrance& settled :
       {of("localhost:" + Serve(wants), caller_), of(Shows(own), {}),
        of("127.0.0.1:" + Serve({}), caller_),
        of(Shows(MadeCertificate({.name = "other"})), caller_)}) {
    EXPECT_TRUE(settled.settled) << settled.what;
    EXPECT_NE(settled.what, "");
  }
  const Odd rude([](int) {});
  const std::string rude_address = rude.address();
  for (const auto& [address, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"127.0.0.1:1", "127.0.0.1:1 refuses connections"},
           {"no.such.host.invalid:1", "no.such.host.invalid does not resolve"},
           {rude_address, "ended the handshake"}}) {
    const Hindrance passing = of(address, caller_);
    EXPECT_FALSE(passing.settled) << passing.what;
    EXPECT_THAT(passing.what, HasSubstr(what));
  }
  // Its queue of connections is full, as if a firewall dropped packets.
  const Full full;
  EXPECT_THAT(WhatHinders(full.address(), {}, milliseconds(300)).what,
              HasSubstr("answers no connection"));
}

TEST_F(TlsProbeTest, WhatIsNoServerEndsInTime) {
  const auto took = [&](const Odd& odd) {
    const MonotonicTime began = Clock::Real().Now();
    EXPECT_THAT(TlsTrouble(odd.address(), caller_, milliseconds(100)),
                HasSubstr("does not speak TLS"));
    return Clock::Real().Now() - began;
  };
  std::atomic<bool> done = false;
  const Odd silent([&](int) {
    while (!done) std::this_thread::sleep_for(milliseconds(5));
  });
  EXPECT_LT(took(silent), seconds(5));
  done = true;
  const Odd rude([](int) {});
  EXPECT_LT(took(rude), seconds(5));
  const Odd garbage([](int fd) {
    const std::string text(100'000, 'x');
    send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  });
  EXPECT_LT(took(garbage), seconds(5));
  // The beginning of an endless TLS record, byte by byte.
  const Odd slow([](int fd) {
    const char head[] = {0x16, 3, 3, 0x40, 0};
    send(fd, head, sizeof head, MSG_NOSIGNAL);
    for (int i = 0; i < 2000 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; ++i)
      std::this_thread::sleep_for(milliseconds(5));
  });
  EXPECT_LT(took(slow), seconds(5));
}

}  // namespace
}  // namespace leat::rpc
