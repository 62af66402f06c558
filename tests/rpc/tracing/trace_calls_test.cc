// SPDX-License-Identifier: Apache-2.0
//
// Tests the collection of spans, over a real server.
#include "rpc/tracing/trace_calls.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/trace.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/server/server.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;

const std::string kTracedPlan(32, 'p');

class TraceServiceTest : public ::testing::Test {
 protected:
  TraceServiceTest() {
    const std::string address =
        fmt::format("unix-abstract:leat-trace-{}-{}", getpid(), ++number_);
    auto server =
        rpc::Server::Start({.address = address}, {}, {calls_.service()});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::TraceService::NewStub(rpc::MakeChannel(address, {}));
  }
  ~TraceServiceTest() override {
    calls_.Stop();
    server_.reset();
  }

  static v1::CollectSpansRequest Request(int ms) {
    v1::CollectSpansRequest request;
    request.set_plan_hash(kTracedPlan);
    request.mutable_duration()->set_nanos(ms * 1'000'000);
    request.set_ratio(1);
    request.set_max_spans(3);
    return request;
  }
  grpc::Status Collect(const v1::CollectSpansRequest& request,
                       v1::CollectSpansResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    return stub_->CollectSpans(&context, request, response);
  }
  // Waits until there is a listener.
  std::shared_ptr<const TracedStep> AwaitStep() {
    while (true) {
      if (auto step = tracer_.Step(kTracedPlan, "job", "c", 1, 2)) return step;
      std::this_thread::yield();
    }
  }

  static inline std::atomic<int> number_{0};
  Tracer tracer_{Clock::Real()};
  std::atomic<bool> refuse_{false};
  TraceCalls calls_{[this](std::string_view, const grpc::ServerContextBase&) {
                      return refuse_ ? PermissionDenied("no role for it")
                                     : absl::OkStatus();
                    },
                    [this](const v1::CollectSpansRequest& request) {
                      return CollectFrom(&tracer_, request);
                    },
                    Clock::Real()};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::TraceService::Stub> stub_;
};

TEST_F(TraceServiceTest, SpansOfTheWhileComeAndWhatFoundNoRoomIsCounted) {
  v1::CollectSpansResponse response;
  grpc::Status status;
  std::thread caller([&] { status = Collect(Request(200), &response); });
  const auto step = AwaitStep();
  for (uint64_t i = 1; i <= 5; ++i)
    step->Record({.of = nullptr,
                  .kind = SpanKind::kRow,
                  .failed = i == 2,
                  .thread = 4,
                  .id = i,
                  .parent = 77,
                  .begin_ns = 10,
                  .end_ns = 20,
                  .rows = 1});
  caller.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.spans_size(), 3);
  EXPECT_EQ(response.dropped(), 2u);
  const v1::CollectedSpan& span = response.spans(1);
  EXPECT_EQ(span.trace_id().size(), 16u);
  EXPECT_EQ(span.kind(), v1::SPAN_KIND_ROW);
  EXPECT_EQ(span.id(), 2u);
  EXPECT_EQ(span.parent(), 77u);
  EXPECT_EQ(span.epoch(), 1u);
  EXPECT_EQ(span.step(), 2u);
  EXPECT_EQ(span.consumer(), "c");
  EXPECT_EQ(span.thread(), 4u);
  EXPECT_TRUE(span.failed());
  EXPECT_EQ(tracer_.Step(kTracedPlan, "job", "c", 1, 2), nullptr);
}

TEST_F(TraceServiceTest, MalformedRequestsAreRefused) {
  v1::CollectSpansResponse response;
  const auto code = [&](auto change) {
    v1::CollectSpansRequest request = Request(1);
    change(request);
    return Collect(request, &response).error_code();
  };
  const auto wrong = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(code([](auto& r) { r.set_plan_hash("short"); }), wrong);
  EXPECT_EQ(code([](auto& r) { r.set_ratio(-1); }), wrong);
  EXPECT_EQ(code([](auto& r) { r.set_ratio(std::nan("")); }), wrong);
  EXPECT_EQ(code([](auto& r) { r.set_max_spans(0); }), wrong);
  EXPECT_EQ(code([](auto& r) { r.set_max_spans(20'001); }), wrong);
  EXPECT_EQ(code([](auto& r) { r.mutable_duration()->set_seconds(61); }),
            wrong);
  EXPECT_EQ(code([](auto& r) { r.mutable_duration()->set_seconds(-1); }),
            wrong);
  EXPECT_EQ(code([](auto& r) { r.mutable_duration()->set_nanos(-1); }), wrong);
  refuse_ = true;
  EXPECT_EQ(code([](auto&) {}), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(TraceServiceTest, TooManyAreRefusedAndAStopAnswersAll) {
  std::vector<std::thread> callers;
  std::vector<grpc::Status> statuses(TraceCalls::kMaxCalls);
  std::vector<v1::CollectSpansResponse> responses(statuses.size());
  v1::CollectSpansRequest longer = Request(0);
  longer.mutable_duration()->set_seconds(60);
  // A call that is rejected because one from below was faster is repeated.
  const auto is_refused = [](const grpc::Status& status) {
    return status.error_message().find(": the limit") != std::string::npos;
  };
  for (size_t i = 0; i < statuses.size(); ++i)
    callers.emplace_back([&, i] {
      do {
        statuses[i] = Collect(longer, &responses[i]);
      } while (is_refused(statuses[i]));
    });
  v1::CollectSpansResponse response;
  grpc::Status refused;
  do {
    refused = Collect(Request(1), &response);
  } while (refused.ok());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("collect spans: the limit"));
  calls_.Stop();
  for (std::thread& caller : callers) caller.join();
  for (const grpc::Status& status : statuses)
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Collect(Request(1), &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace leat::rpc
