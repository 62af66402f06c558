// SPDX-License-Identifier: Apache-2.0
//
// WatchEvents over real sockets.
#include <chrono>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

using grpc::StatusCode;
using testing::Contains;
using testing::HasSubstr;

using Reader = std::unique_ptr<grpc::ClientReader<v1::WatchEventsResponse>>;

class Events : public ServiceTest {
 protected:
  // Returns all current events.
  std::vector<v1::ClusterEvent> Now(const v1::WatchEventsRequest& request) {
    const auto context = client_->Context();
    const Reader reader = client_->admin().WatchEvents(context.get(), request);
    std::vector<v1::ClusterEvent> events;
    v1::WatchEventsResponse response;
    while (reader->Read(&response)) {
      last_ = response;
      events.insert(events.end(), response.events().begin(),
                    response.events().end());
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return events;
  }
  // Returns the next event of a type from a call that follows.
  static v1::ClusterEvent Next(const Reader& reader, const std::string& type) {
    v1::WatchEventsResponse response;
    while (reader->Read(&response))
      for (const v1::ClusterEvent& event : response.events())
        if (event.type() == type) return event;
    return {};
  }

  v1::WatchEventsResponse last_;
};

TEST_F(Events, AreReadOnceAndOnlyTheNewOnesAgain) {
  {
    // The worker's own answer may come before its event is recorded.
    v1::WatchEventsRequest follow;
    follow.set_follow(true);
    follow.set_subject("worker/a");
    const auto context = client_->Context(60);
    const Reader reader = client_->admin().WatchEvents(context.get(), follow);
    FakeWorker worker(client_.get(), "a");
    worker.Next();
    ASSERT_TRUE(worker.Leave().ok());
    ASSERT_EQ(Next(reader, "worker.left").type(), "worker.left");
    context->TryCancel();
    reader->Finish().ok();
  }
  v1::WatchEventsRequest request;
  request.set_subject("worker/a");
  const auto events = Now(request);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type(), "worker.joined");
  EXPECT_EQ(events[0].severity(), "info");
  EXPECT_EQ(events[0].subjects(0), "worker/a");
  EXPECT_GT(events[0].at().seconds(), 1'700'000'000);
  EXPECT_EQ(events[1].type(), "worker.left");
  EXPECT_NE(last_.instance(), 0u);
  request.set_after(last_.sequence());
  request.set_instance(last_.instance());
  EXPECT_EQ(Now(request).size(), 0u);
  EXPECT_NE(last_.sequence(), 0u) << "the first answer comes without events";
  request.set_instance(last_.instance() + 1);
  EXPECT_EQ(Now(request).size(), 2u) << "numbers of another start";
  request.set_instance(0);
  request.set_after(0);
  request.mutable_since()->set_seconds(0);
  EXPECT_EQ(Now(request).size(), 0u);
}

TEST_F(Events, ComeWhileTheyAreFollowed) {
  v1::WatchEventsRequest request;
  request.set_follow(true);
  request.set_subject("worker");
  const auto context = client_->Context(60);
  const Reader reader = client_->admin().WatchEvents(context.get(), request);
  v1::WatchEventsResponse first;
  ASSERT_TRUE(reader->Read(&first)) << "at once, without an event";
  EXPECT_EQ(first.events_size(), 0);
  FakeWorker worker(client_.get(), "b");
  EXPECT_EQ(Next(reader, "worker.joined").subjects(0), "worker/b");
  worker.Vanish();
  EXPECT_EQ(Next(reader, "worker.disconnected").severity(), "warn");
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
}

TEST_F(Events, OfFindingsAreToldWithoutBeingAskedFor) {
  v1::WatchEventsRequest request;
  request.set_follow(true);
  request.set_subject("finding/NO_WORKERS");
  const auto context = client_->Context(60);
  const Reader reader = client_->admin().WatchEvents(context.get(), request);
  const v1::ClusterEvent raised = Next(reader, "finding.raised");
  EXPECT_EQ(raised.severity(), "error");
  EXPECT_THAT(raised.message(), HasSubstr("no worker is connected"));
  context->TryCancel();
  reader->Finish().ok();
}

TEST_F(Events, OfAnUnknownKindAreWrongUse) {
  for (const char* subject : {"wrk", "job/"}) {
    v1::WatchEventsRequest request;
    request.set_subject(subject);
    const auto context = client_->Context();
    const Reader reader = client_->admin().WatchEvents(context.get(), request);
    v1::WatchEventsResponse response;
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_EQ(reader->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  }
  v1::WatchEventsRequest request;
  request.mutable_since()->set_seconds(int64_t{1} << 60);
  const auto context = client_->Context();
  const Reader reader = client_->admin().WatchEvents(context.get(), request);
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(Events, AreFollowedByABoundedNumber) {
  config_.coordinator.events.max_watchers = 2;
  Start();
  v1::WatchEventsRequest request;
  request.set_follow(true);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<Reader> readers;
  v1::WatchEventsResponse response;
  for (int i = 0; i < 2; ++i) {
    contexts.push_back(client_->Context(60));
    readers.push_back(
        client_->admin().WatchEvents(contexts.back().get(), request));
    // The first answer may come before there is an event.
    ASSERT_EQ(Next(readers.back(), "finding.raised").type(), "finding.raised");
  }
  const auto refused = client_->Context();
  const Reader third = client_->admin().WatchEvents(refused.get(), request);
  EXPECT_FALSE(third->Read(&response));
  EXPECT_EQ(third->Finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(Now({}).empty()) << "who does not follow is let in";
  contexts[0]->TryCancel();
  while (readers[0]->Read(&response)) {
  }
  readers[0]->Finish().ok();
  bool in = false;
  for (int i = 0; i < 500 && !in; ++i) {
    const auto context = client_->Context();
    const Reader reader = client_->admin().WatchEvents(context.get(), request);
    in = reader->Read(&response);
    context->TryCancel();
    reader->Finish().ok();
  }
  EXPECT_TRUE(in) << "a place is free again";
  contexts[1]->TryCancel();
  readers[1]->Finish().ok();
}

TEST_F(Events, EndWithTheTokenAndWithTheDaemon) {
  v1::CreateAccessTokenRequest create;
  create.set_role("viewer");
  create.set_name("eyes");
  v1::CreateAccessTokenResponse created;
  ASSERT_TRUE(client_->admin()
                  .CreateAccessToken(client_->Context().get(), create, &created)
                  .ok());
  Client viewer(daemon_->address(), created.token());
  v1::WatchEventsRequest request;
  request.set_follow(true);
  const auto of_viewer = viewer.Context(60);
  const Reader watched = viewer.admin().WatchEvents(of_viewer.get(), request);
  v1::WatchEventsResponse response;
  ASSERT_TRUE(watched->Read(&response));
  v1::RevokeAccessTokenRequest revoke;
  revoke.set_token("eyes");
  v1::RevokeAccessTokenResponse revoked;
  ASSERT_TRUE(client_->admin()
                  .RevokeAccessToken(client_->Context().get(), revoke, &revoked)
                  .ok());
  while (watched->Read(&response)) {
  }
  EXPECT_EQ(watched->Finish().error_code(), StatusCode::UNAUTHENTICATED);

  const auto context = client_->Context(60);
  const Reader reader = client_->admin().WatchEvents(context.get(), request);
  ASSERT_TRUE(reader->Read(&response));
  std::future<grpc::Status> ended = std::async([&] {
    v1::WatchEventsResponse more;
    while (reader->Read(&more)) {
    }
    return reader->Finish();
  });
  daemon_->Drain();
  EXPECT_EQ(ended.get().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(Events, OfAMuteAreToldAndTheFindingIsMarked) {
  v1::MuteFindingRequest mute;
  mute.set_code("NO_WORKERS");
  mute.mutable_lifetime()->set_seconds(3600);
  v1::MuteFindingResponse muted;
  ASSERT_TRUE(client_->admin()
                  .MuteFinding(client_->Context().get(), mute, &muted)
                  .ok());
  v1::GetStatusResponse status = client_->Status();
  ASSERT_EQ(status.findings_size(), 1);
  EXPECT_TRUE(status.findings(0).muted());
  EXPECT_TRUE(status.findings(0).has_muted_until());
  v1::UnmuteFindingRequest unmute;
  unmute.set_code("NO_WORKERS");
  v1::UnmuteFindingResponse unmuted;
  ASSERT_TRUE(client_->admin()
                  .UnmuteFinding(client_->Context().get(), unmute, &unmuted)
                  .ok());
  EXPECT_FALSE(client_->Status().findings(0).muted());
  mute.set_code("NO_SUCH");
  EXPECT_EQ(client_->admin()
                .MuteFinding(client_->Context().get(), mute, &muted)
                .error_code(),
            StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace leat::server
