// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/control.h"

#include <unistd.h>

#include <map>
#include <string>
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

namespace leat::client {
namespace {

using ::testing::HasSubstr;
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
