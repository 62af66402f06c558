// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/control.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/api/put_lists.h"
#include "client/leat/client.h"
#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/call/grpc_status.h"
#include "rpc/server/server.h"
#include "tests/rpc/certificate_maker.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers every GetJob in the same way, or waits for the test first.
class OneAnswer final : public v1::CoordinatorService::Service {
 public:
  explicit OneAnswer(absl::Status answer) : answer_(std::move(answer)) {
    server_ =
        rpc::Server::Start(
            {.address = fmt::format("unix-abstract:leat-control-{}", getpid())},
            {}, {this})
            .value();
  }
  ~OneAnswer() override { server_.reset(); }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                      v1::GetJobResponse*) override {
    if (answer_.ok()) held.WaitForNotification();
    return rpc::ToGrpc(answer_);
  }
  const std::string& address() const { return server_->address(); }

  absl::Notification held;

 private:
  const absl::Status answer_;
  std::unique_ptr<rpc::Server> server_;
};

absl::Status Asked(Control& control, absl::Duration timeout) {
  v1::GetJobRequest request;
  request.set_name("j");
  v1::GetJobResponse response;
  return control.Call(&v1::CoordinatorService::Stub::GetJob, request, &response,
                      timeout);
}

TEST(Control, WhatTheCoordinatorSaysIsNotTakenForGrpcsWords) {
  for (const absl::Status& said :
       {Unavailable("worker a failed to connect to its storage"),
        DeadlineExceeded("Deadline Exceeded")}) {
    OneAnswer coordinator(said);
    Control control(coordinator.address(), {}, absl::Minutes(1));
    EXPECT_EQ(Asked(control, absl::Minutes(1)), said);
  }
}

TEST(Control, NobodyThereAndNobodyAnsweringAreNamed) {
  OneAnswer coordinator(absl::OkStatus());
  Control late(coordinator.address(), {}, absl::Minutes(1));
  const absl::Status status = Asked(late, absl::Milliseconds(50));
  coordinator.held.Notify();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              StartsWith(fmt::format("the coordinator at {} did not answer in "
                                     "time",
                                     coordinator.address())));
  const std::string nobody = coordinator.address() + "-nobody";
  Control absent(nobody, {}, absl::Minutes(1));
  const absl::Status gone = Asked(absent, absl::Minutes(1));
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(Message(gone)),
              StartsWith(fmt::format("no coordinator at {}: ", nobody)));
}

TEST(Control, ACallThatAStoppingCoordinatorCancelsMayBeMadeAgain) {
  OneAnswer coordinator(absl::CancelledError("CANCELLED"));
  Control control(coordinator.address(), {}, absl::Minutes(1));
  EXPECT_EQ(
      Asked(control, absl::Minutes(1)),
      Unavailable("the coordinator at {} is stopping", coordinator.address()));
}

class Greeter final : public v1::CoordinatorService::Service {
  grpc::Status Hello(grpc::ServerContext*, const v1::HelloRequest*,
                     v1::HelloResponse*) override {
    return grpc::Status::OK;
  }
};

// A coordinator whose handshakes fail, or that starts late.
class ConnectTest : public ::testing::Test {
 protected:
  // Starts the coordinator, and returns its port.
  std::string Serve(const rpc::Security& security, int port = 0) {
    greeters_.push_back(std::make_unique<Greeter>());
    server_ = rpc::Server::Start({.address = fmt::format("127.0.0.1:{}", port)},
                                 security, {greeters_.back().get()})
                  .value();
    return server_->address().substr(server_->address().rfind(':') + 1);
  }
  // Returns the error of a connect that ends long before its deadline.
  std::string Refusal(const std::string& address,
                      const rpc::Security& security) {
    Control control(address, security, absl::Minutes(10));
    const absl::Time began = absl::Now();
    const absl::Status status =
        control.Connect(absl::Now() + absl::Minutes(10));
    EXPECT_LT(absl::Now() - began, absl::Seconds(20));
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(Message(status)), Not(HasSubstr("tried for")));
    return std::string(Message(status));
  }

  const rpc::MadeCertificate root_{
      {.name = "root", .names = "", .authority = true}};
  const rpc::MadeCertificate own_{{}, &root_};
  const rpc::Security trusts_ = {.ca_pem = root_.pem()};
  std::vector<std::unique_ptr<Greeter>> greeters_;  // outlive the server
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(ConnectTest, AHandshakeThatTimeDoesNotMendIsSaidAtOnce) {
  const rpc::Security shows = {.cert_pem = own_.pem(),
                               .key_pem = own_.key_pem()};
  const std::string port = Serve(shows);
  EXPECT_THAT(Refusal("127.0.0.1:" + port, trusts_),
              HasSubstr("for DNS:localhost, and not for 127.0.0.1: call it"));
  const rpc::MadeCertificate stranger(
      {.name = "stranger", .names = "", .authority = true});
  EXPECT_THAT(Refusal("localhost:" + port, {.ca_pem = stranger.pem()}),
              HasSubstr("no authority which is trusted here vouches for"));
  EXPECT_THAT(Refusal("localhost:" + port, {}),
              HasSubstr("speaks TLS, and this caller does not"));
  const rpc::MadeCertificate old(
      {.from = -std::chrono::hours(48), .to = -std::chrono::hours(24)}, &root_);
  EXPECT_THAT(Refusal("localhost:" + Serve({.cert_pem = old.pem(),
                                            .key_pem = old.key_pem()}),
                      trusts_),
              HasSubstr("has expired: replace --tls-cert"));
  EXPECT_THAT(Refusal("localhost:" + Serve({.ca_pem = root_.pem(),
                                            .cert_pem = own_.pem(),
                                            .key_pem = own_.key_pem()}),
                      trusts_),
              HasSubstr("wants a certificate of this caller"));
  EXPECT_THAT(Refusal("localhost:" + Serve({}), trusts_),
              HasSubstr("does not speak TLS"));
}

TEST_F(ConnectTest, ACoordinatorThatComesLateIsWaitedFor) {
  const std::string port = Serve({});
  server_.reset();
  Control control("127.0.0.1:" + port, {}, absl::Minutes(1));
  EXPECT_TRUE(absl::IsUnavailable(
      control.Connect(absl::Now() + absl::Milliseconds(100))));
  absl::Status late;
  std::thread waiting(
      [&] { late = control.Connect(absl::Now() + absl::Minutes(1)); });
  Serve({}, std::stoi(port));
  waiting.join();
  EXPECT_EQ(late, absl::OkStatus());
}

// Accepts lists, and is busy when the first block comes.
class ListKeeper final : public v1::CoordinatorService::Service {
 public:
  ListKeeper()
      : server_(rpc::Server::Start(
                    {.address =
                         fmt::format("unix-abstract:leat-lists-{}", getpid()),
                     .max_receive_bytes = 8 << 20},
                    {}, {this})
                    .value()) {}
  ~ListKeeper() override { server_.reset(); }
  grpc::Status FindListBlocks(grpc::ServerContext*,
                              const v1::FindListBlocksRequest* request,
                              v1::FindListBlocksResponse* response) override {
    for (const v1::ListBlock& block : request->blocks())
      response->add_present(kept.contains(block.sha256()));
    return grpc::Status::OK;
  }
  grpc::Status PutListBlock(grpc::ServerContext*,
                            const v1::PutListBlockRequest* request,
                            v1::PutListBlockResponse*) override {
    if (puts++ == 0) return {grpc::StatusCode::UNAVAILABLE, "busy"};
    kept[request->sha256()] = request->bytes();
    return grpc::Status::OK;
  }
  const std::string& address() const { return server_->address(); }

  std::map<std::string, std::string> kept;
  int puts = 0;

 private:
  std::unique_ptr<rpc::Server> server_;
};

Graph WithALongList(const LongList& list) {
  Graph graph;
  graph.nodes = {{"readers.files", {}, {{"labels", list}}}};
  return graph;
}

TEST(PutLists, OnlyTheBlocksThatAreNotThereAreBrought) {
  const LongList list = *LongListOf(std::vector<int64_t>(300'000, 7));
  // Blocks of equal bytes are one block.
  ASSERT_EQ(list.blocks.size(), 3);
  ListKeeper coordinator;
  Control control(coordinator.address(), {}, absl::Minutes(1));
  const Retry retry{.first = absl::Milliseconds(1),
                    .random = [] { return 0.0; },
                    .now = absl::Now,
                    .pause = [](absl::Duration) {}};
  const auto put = [&] {
    return PutLists(WithALongList(list), retry, absl::Now() + absl::Minutes(1),
                    &control);
  };
  const absl::Status first = put();
  ASSERT_TRUE(first.ok()) << first;
  EXPECT_EQ(coordinator.kept.size(), 2);
  for (size_t i = 0; i < list.blocks.size(); ++i) {
    const std::string name(list.blocks[i].begin(), list.blocks[i].end());
    EXPECT_EQ(coordinator.kept[name], BlockOf(list, i));
  }
  const int puts = coordinator.puts;
  ASSERT_TRUE(put().ok());
  EXPECT_EQ(coordinator.puts, puts);
  LongList digest = list;
  digest.values = nullptr;
  EXPECT_FALSE(HasLists(WithALongList(digest)));
}

TEST(PutLists, ACoordinatorThatTakesNoneIsNamed) {
  OneAnswer coordinator(absl::OkStatus());
  Control control(coordinator.address(), {}, absl::Minutes(1));
  const absl::Status status =
      PutLists(WithALongList(*LongListOf(std::vector<int64_t>(5000, 7))),
               {.random = [] { return 0.0; }, .now = absl::Now, .pause = {}},
               absl::Now() + absl::Minutes(1), &control);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(Message(status)),
      StartsWith("a list of more than 4096 numbers or 65536 texts wants "
                 "a coordinator that takes lists in blocks"));
}

TEST(Connect, AKeyOfAnotherCertificateIsSaidAtOnce) {
  const rpc::MadeCertificate own({}), other({});
  const auto service = Service::Connect({.address = "127.0.0.1:1",
                                         .ca_pem = own.pem(),
                                         .cert_pem = own.pem(),
                                         .key_pem = other.key_pem()});
  EXPECT_TRUE(absl::IsInvalidArgument(service.status())) << service.status();
  EXPECT_THAT(std::string(Message(service.status())),
              HasSubstr("is not the key of the certificate"));
}

TEST(Connect, ATokenThatCannotBeSentIsNamedAndNotTold) {
  for (const char* wrong : {"of two\nlines", "with a space", "\x7f"}) {
    const auto service =
        Service::Connect({.address = "127.0.0.1:1", .access_token = wrong});
    EXPECT_TRUE(absl::IsInvalidArgument(service.status())) << service.status();
    const std::string text(Message(service.status()));
    EXPECT_THAT(text, HasSubstr("access_token"));
    EXPECT_EQ(text.find(wrong), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace leat::client
