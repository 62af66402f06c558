// SPDX-License-Identifier: Apache-2.0
//
// Tests a server with its own accept loop, as clients see it.
#include "rpc/server/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/status.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/server/self_call.h"
#include "tests/support/health.h"

namespace leat::rpc {
namespace {

std::unique_ptr<Server> Start(const ServerOptions& options,
                              const Security& security = {}) {
  static v1::WorkerService::CallbackService service;
  return Server::Start(options, security, {&service}).value();
}

TEST(Server, AnswersOnEachKindOfAddress) {
  for (const std::string address :
       {"127.0.0.1:0", "[::1]:0", "localhost:0",
        "unix-abstract:leat-server-test", "unix:/tmp/leat-server-test.sock"}) {
    const auto server = Start({.address = address});
    const auto health = Health(server->address());
    ASSERT_TRUE(health.ok()) << address << ": " << health.status();
    EXPECT_EQ(*health, kServing);
  }
}

TEST(Server, IsNotServingWhileItDrainsAndThenGone) {
  const auto server = Start({});
  server->StopServing();
  EXPECT_EQ(Health(server->address()).value_or(""), kNotServing);
  server->Drain(std::chrono::milliseconds(10));
  EXPECT_EQ(Health(server->address()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Server, LosesNoneOfManyClientsAtOnce) {
  const auto server = Start({});
  constexpr int kThreads = 8, kEach = 25;
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j)
        answered += Health(server->address()).ok() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, kThreads * kEach);
  EXPECT_EQ(server->connections().accepted,
            static_cast<uint64_t>(kThreads * kEach));
  EXPECT_EQ(server->connections().refused_all, 0u);
}

TEST(Server, TheWatchdogHearsAServerThatIsFull) {
  const auto deaf = std::make_shared<std::atomic<bool>>(false);
  const auto server =
      Start({.max_connections = 1,
             .watchdog_interval = std::chrono::milliseconds(500),
             .on_deaf = [deaf] { *deaf = true; }});
  const auto holding = MakeChannel(server->address(), {});
  ASSERT_TRUE(holding->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(20)));
  do {
    EXPECT_EQ(Health(server->address()).status().code(),
              absl::StatusCode::kUnavailable);
  } while (server->connections().own < 2);
  EXPECT_GE(server->connections().refused_all, 1u);
  EXPECT_FALSE(*deaf);
}

// An acceptor without a receiver of its connections does not answer.
TEST(AskSelf, NoticesThatNobodyAnswers) {
  std::vector<int> taken;
  const auto acceptor =
      Acceptor::Start(
          Listener::Bind("127.0.0.1:0", std::chrono::seconds(10)).value(), {},
          [&](int, int fd, bool) { taken.push_back(fd); })
          .value();
  const auto ask = [&] {
    return AskSelf(acceptor.get(),
                   Clock::Real().Now() + std::chrono::milliseconds(200));
  };
  EXPECT_EQ(ask(), Deafness::Answer::kMissed);
  acceptor->Stop();
  EXPECT_EQ(taken.size(), 1u);
  EXPECT_EQ(ask(), Deafness::Answer::kCouldNotAsk);
  for (const int fd : taken) close(fd);
}

// Tests of certificates.

std::string Slurp(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "leat_server_test";
    std::filesystem::create_directories(folder_);
    for (Security* each : {&first_, &second_}) {
      const std::string make = fmt::format(
          "cd {} && openssl req -x509 -newkey ec -pkeyopt "
          "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
          "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem "
          "2>/dev/null",
          folder_.string());
      if (std::system(make.c_str()) != 0)
        GTEST_SKIP() << "no openssl program here to make a certificate with";
      each->cert_pem = Slurp(folder_ / "cert.pem");
      each->key_pem = Slurp(folder_ / "key.pem");
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Returns whether the server answers a client that trusts only this
  // certificate.
  static bool Answers(const Server& server, const Security& trusted) {
    return Health(server.address(), {.ca_pem = trusted.cert_pem}).ok();
  }
  std::filesystem::path folder_;
  Security first_, second_;
};

TEST_F(TlsTest, CertificatesAreExchangedWhileItServes) {
  const auto server = Start({.address = "localhost:0"}, first_);
  EXPECT_TRUE(Answers(*server, first_));
  EXPECT_FALSE(Answers(*server, second_));
  ASSERT_TRUE(server->ReplaceTls(second_).ok());
  EXPECT_TRUE(Answers(*server, second_));
  EXPECT_FALSE(Answers(*server, first_));
}

TEST_F(TlsTest, BadOnesLeaveTheLastGoodOnes) {
  const auto server = Start({.address = "localhost:0"}, first_);
  Security mixed = first_, broken = second_, asks = second_;
  mixed.key_pem = second_.key_pem;
  broken.cert_pem = broken.cert_pem.substr(0, 200);
  asks.ca_pem = first_.cert_pem;
  EXPECT_EQ(server->ReplaceTls(mixed).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server->ReplaceTls(broken).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server->ReplaceTls(asks).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server->ReplaceTls({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Answers(*server, first_));
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsSaidAtTheStart) {
  first_.key_pem = second_.key_pem;
  const absl::Status status = Server::Start({}, first_, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(status).find("--tls-key"), std::string_view::npos);
}

// The process does not trust its own certificate, and need not.
TEST_F(TlsTest, TheWatchdogIsAnsweredWithoutTls) {
  Security asks = first_;
  asks.ca_pem = second_.cert_pem;
  std::atomic<bool> deaf = false;
  const auto server =
      Start({.address = "localhost:0",
             .watchdog_interval = std::chrono::milliseconds(500),
             .on_deaf = [&] { deaf = true; }},
            asks);
  Security caller = second_;
  caller.ca_pem = first_.cert_pem;
  do {
    EXPECT_TRUE(Health(server->address(), caller).ok());
  } while (server->connections().own < 2);
  EXPECT_FALSE(Health(server->address(), {}).ok());
  EXPECT_FALSE(deaf);
}

}  // namespace
}  // namespace leat::rpc
