// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/call/client_stream.h"
#include "rpc/call/server_stream.h"
#include "rpc/server/server.h"

namespace leat::rpc {
namespace {

using Request = v1::RowsRequest;
using Response = v1::RowsResponse;

// Counts down to zero once.
class Latch {
 public:
  void Set() {
    MutexLock lock(&mu_);
    set_ = true;
    cv_.NotifyAll();
  }
  bool Wait(int seconds = 20) {
    const MonotonicTime deadline =
        Clock::Real().Now() + std::chrono::seconds(seconds);
    MutexLock lock(&mu_);
    while (!set_ && cv_.WaitUntil(&mu_, deadline)) {
    }
    return set_;
  }

 private:
  Mutex mu_;
  CondVar cv_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
};

struct Counters {
  std::atomic<int> live{0}, closed{0};
};

// Answers a request of n rows with n responses; request 0 closes the stream
// with an error; request ~0 floods.
class EchoHandler : public StreamHandler<Request> {
 public:
  EchoHandler(std::shared_ptr<Stream<Response>> stream, Counters* counters)
      : stream_(std::move(stream)), counters_(counters) {
    ++counters_->live;
  }
  ~EchoHandler() override { --counters_->live; }
  void OnMessage(Request request) override {
    const uint64_t id = request.request().request_id();
    if (id == 0) return stream_->Close(DataLoss("asked for it"));
    if (id == ~uint64_t{0}) return Flood();
    Response response;
    response.set_request_id(id);
    for (int i = 0; i < request.request().rows_size(); ++i) {
      response.set_group_id(static_cast<uint64_t>(i));
      // A client that has cancelled the stream accepts no more.
      const absl::Status sent = stream_->Send(response);
      EXPECT_TRUE(sent.ok() || absl::IsCancelled(sent)) << sent;
    }
  }
  void OnClosed(const absl::Status&) override { ++counters_->closed; }

 private:
  // Sends faster than a peer reads, until the queue is full.
  void Flood() {
    Response response;
    response.set_data(std::string(64 << 10, 'x'));
    absl::Status sent;
    while (sent.ok()) sent = stream_->Send(response);
    stream_->Close(sent);
  }

  const std::shared_ptr<Stream<Response>> stream_;
  Counters* const counters_;
};

class EchoService : public v1::WorkerService::CallbackService {
 public:
  EchoService(Security security, Counters* counters)
      : security_(std::move(security)), counters_(counters) {}
  grpc::ServerBidiReactor<Request, Response>* Rows(
      grpc::CallbackServerContext* context) override {
    if (absl::Status checked = CheckMetadata(security_, *context);
        !checked.ok())
      return new RejectedStream<Request, Response>(checked);
    return ServerStream<Request, Response>::Start(
        context, 1000, [&](std::shared_ptr<Stream<Response>> stream) {
          return std::make_shared<EchoHandler>(std::move(stream), counters_);
        });
  }

 private:
  const Security security_;
  Counters* const counters_;
};

class RowCollector : public StreamHandler<Response> {
 public:
  explicit RowCollector(size_t wanted) : wanted_(wanted) {}
  void OnMessage(Response response) override {
    threads.insert(std::this_thread::get_id());
    groups.push_back(response.group_id());
    if (groups.size() == wanted_) all.Set();
  }
  void OnClosed(const absl::Status& s) override {
    threads.insert(std::this_thread::get_id());
    status = s;
    closed.Set();
  }
  std::vector<uint64_t> groups;
  std::set<std::thread::id> threads;
  absl::Status status;
  Latch all, closed;

 private:
  const size_t wanted_;
};

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() : service_(Security{.token = "secret"}, &counters_) {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    server_ = Server::Start(options, {}, {&service_}).value();
  }
  // Ends streams that are still open, then checks that none is left on the
  // server.
  void TearDown() override {
    server_.reset();
    EXPECT_EQ(counters_.live, 0);
  }
  std::shared_ptr<Stream<Request>> Open(std::shared_ptr<RowCollector> collector,
                                        Security security = {
                                            .token = "secret"}) {
    auto channel = MakeChannel(server_->address(), security);
    std::shared_ptr<v1::WorkerService::Stub> stub =
        v1::WorkerService::NewStub(channel);
    return ClientStream<Response, Request>::Start(
        security, 100,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub->PrepareAsyncRows(context, queue);
        },
        [&](std::shared_ptr<Stream<Request>>) { return collector; }, stub);
  }
  static Request Ask(uint64_t id, int rows) {
    Request request;
    request.mutable_request()->set_request_id(id);
    for (int i = 0; i < rows; ++i)
      request.mutable_request()->add_rows(static_cast<uint32_t>(i));
    return request;
  }

  Counters counters_;
  EchoService service_;
  std::unique_ptr<Server> server_;
};

TEST_F(StreamTest, AnswersComeInOrderAndHalfCloseEndsWithOk) {
  auto collector = std::make_shared<RowCollector>(500);
  auto stream = Open(collector);
  ASSERT_TRUE(stream->Send(Ask(1, 500)).ok());
  ASSERT_TRUE(collector->all.Wait());
  for (size_t i = 0; i < collector->groups.size(); ++i)
    EXPECT_EQ(collector->groups[i], i);
  stream->Close(absl::OkStatus());
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_TRUE(collector->status.ok()) << collector->status;
  EXPECT_EQ(stream->Send(Ask(2, 1)).code(), absl::StatusCode::kCancelled);
}

TEST_F(StreamTest, TheServersStatusReachesTheClient) {
  auto collector = std::make_shared<RowCollector>(1);
  auto stream = Open(collector);
  ASSERT_TRUE(stream->Send(Ask(0, 0)).ok());
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_EQ(collector->status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(collector->status), "asked for it");
}

TEST_F(StreamTest, AWrongTokenIsRefused) {
  auto collector = std::make_shared<RowCollector>(1);
  auto stream = Open(collector, Security{.token = "guess"});
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_EQ(collector->status.code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(StreamTest, NobodyAtTheAddressIsUnavailable) {
  auto collector = std::make_shared<RowCollector>(1);
  std::shared_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(
      MakeChannel("unix-abstract:leat-test-nobody", {}));
  auto stream = ClientStream<Response, Request>::Start(
      {}, 100,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub->PrepareAsyncRows(context, queue);
      },
      [&](std::shared_ptr<Stream<Request>>) { return collector; }, stub);
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_EQ(collector->status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(StreamTest, AFullQueueIsReportedAndNotGrown) {
  auto collector = std::make_shared<RowCollector>(1u << 30);
  auto stream = Open(collector);
  ASSERT_TRUE(stream->Send(Ask(~uint64_t{0}, 1)).ok());
  ASSERT_TRUE(collector->closed.Wait(60));
  EXPECT_EQ(collector->status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StreamTest, CancellingManyStreamsMidwayLeavesNone) {
  std::vector<std::shared_ptr<RowCollector>> collectors;
  std::vector<std::shared_ptr<Stream<Request>>> streams;
  for (int i = 0; i < 40; ++i) {
    collectors.push_back(
        std::make_shared<RowCollector>(i % 2 ? 300 : 1u << 30));
    streams.push_back(Open(collectors.back()));
    ASSERT_TRUE(streams.back()->Send(Ask(1, 300)).ok());
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    ASSERT_TRUE(i % 2 == 0 || collectors[i]->all.Wait());
    streams[i]->Cancel();
  }
  for (auto& collector : collectors) ASSERT_TRUE(collector->closed.Wait());
}

TEST_F(StreamTest, WhatIsQueuedGoesBeforeTheHalfClose) {
  auto collector = std::make_shared<RowCollector>(50 * 3);
  auto stream = Open(collector);
  for (uint64_t id = 0; id < 50; ++id)
    ASSERT_TRUE(stream->Send(Ask(1 + id, 3)).ok());
  stream->Close(absl::OkStatus());
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_TRUE(collector->status.ok()) << collector->status;
  EXPECT_EQ(collector->groups.size(), 50u * 3);
  EXPECT_EQ(stream->queued(), 0u);
}

TEST_F(StreamTest, CancelledAtOnceItEndsOnce) {
  for (int i = 0; i < 50; ++i) {
    auto collector = std::make_shared<RowCollector>(1u << 30);
    auto stream = Open(collector);
    EXPECT_TRUE(stream->Send(Ask(1, 300)).ok());
    stream->Cancel();
    stream->Cancel();
    ASSERT_TRUE(collector->closed.Wait());
    EXPECT_EQ(collector->status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(stream->Send(Ask(2, 1)).code(), absl::StatusCode::kCancelled);
  }
}

TEST_F(StreamTest, AHandlerIsCalledOnOneThread) {
  std::vector<std::shared_ptr<RowCollector>> collectors;
  std::vector<std::shared_ptr<Stream<Request>>> streams;
  for (int i = 0; i < 20; ++i) {
    collectors.push_back(std::make_shared<RowCollector>(300));
    streams.push_back(Open(collectors.back()));
    for (uint64_t id = 1; id <= 3; ++id)
      ASSERT_TRUE(streams.back()->Send(Ask(id, 100)).ok());
  }
  std::set<std::thread::id> all;
  for (size_t i = 0; i < streams.size(); ++i) {
    ASSERT_TRUE(collectors[i]->all.Wait());
    streams[i]->Close(absl::OkStatus());
    ASSERT_TRUE(collectors[i]->closed.Wait());
    EXPECT_EQ(collectors[i]->threads.size(), 1u);
    all.merge(collectors[i]->threads);
  }
  EXPECT_LE(all.size(), 4u);
}

// A stack larger than any address space. The process that finds no thread for
// its first stream is a separate one, since threads stay.
TEST_F(StreamTest, WithoutAThreadItEndsAtOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto open_without_threads = [this] {
    pthread_attr_t before, huge;
    pthread_getattr_default_np(&before);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 62);
    pthread_setattr_default_np(&huge);
    auto collector = std::make_shared<RowCollector>(1);
    auto stream = Open(collector);
    const bool refused = absl::IsResourceExhausted(collector->status) &&
                         !stream->Send(Ask(1, 1)).ok();
    stream->Cancel();
    stream->Close(absl::OkStatus());
    pthread_setattr_default_np(&before);
    auto other = std::make_shared<RowCollector>(1);
    Open(other)->Send(Ask(1, 1)).IgnoreError();
    std::_Exit(refused && other->all.Wait() ? 0 : 1);
  };
  EXPECT_EXIT(open_without_threads(), testing::ExitedWithCode(0), "");
}

TEST_F(StreamTest, StoppingTheServerEndsEndlessStreams) {
  auto collector = std::make_shared<RowCollector>(1);
  auto stream = Open(collector);
  ASSERT_TRUE(stream->Send(Ask(1, 1)).ok());
  ASSERT_TRUE(collector->all.Wait());
  server_->Drain(std::chrono::milliseconds(50));
  server_.reset();
  ASSERT_TRUE(collector->closed.Wait());
  EXPECT_FALSE(collector->status.ok());
}

TEST(ServerTest, APortInUseIsNamedWithItsReason) {
  Counters counters;
  EchoService service({}, &counters);
  ServerOptions options;
  auto first = Server::Start(options, {}, {&service}).value();
  options.address = first->address();
  EchoService other({}, &counters);
  const absl::Status status = Server::Start(options, {}, {&other}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find(first->address()), std::string_view::npos);
  EXPECT_NE(Message(status).find("in use"), std::string_view::npos) << status;
}

TEST(ServerTest, PlaintextBeyondThisMachineMustBeAskedFor) {
  Counters counters;
  EchoService service({}, &counters);
  ServerOptions options;
  options.address = "0.0.0.0:0";
  EXPECT_EQ(Server::Start(options, {}, {&service}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat::rpc
