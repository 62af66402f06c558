// SPDX-License-Identifier: Apache-2.0
#include "worker/session/session.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "rpc/server/server.h"
#include "worker/session/coordinator_client.h"

namespace leat::worker {
namespace {

using Stream = grpc::ServerReaderWriter<v1::WorkerSessionResponse,
                                        v1::WorkerSessionRequest>;

// Ends its first session without reading what comes after the registration, and
// reads its second until a heartbeat has bad samples.
class BreakingCoordinator final : public v1::CoordinatorService::Service {
 public:
  BreakingCoordinator()
      : server_(rpc::Server::Start(
                    {.address = fmt::format(
                         "unix-abstract:leat-session-test-{}", getpid())},
                    {}, {this})
                    .value()) {}

  grpc::Status WorkerSession(grpc::ServerContext*, Stream* stream) override {
    v1::WorkerSessionRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    v1::WorkerSessionResponse welcome;
    welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(
        10'000'000);
    stream->Write(welcome);
    if (sessions_++ == 0) {
      MutexLock lock(&mu_);
      while (!made_) changed_.Wait(&mu_);
      return {grpc::StatusCode::UNAVAILABLE, "broken"};
    }
    while (stream->Read(&request)) {
      if (request.heartbeat().counted_bad_samples().empty()) continue;
      MutexLock lock(&mu_);
      got_ = request.heartbeat();
      changed_.NotifyAll();
    }
    return grpc::Status::OK;
  }

  const std::string& address() const { return server_->address(); }
  // A heartbeat was made after the one that had bad samples, so that one was
  // handed to the stream.
  void SetMade() {
    MutexLock lock(&mu_);
    made_ = true;
    changed_.NotifyAll();
  }
  // Returns the heartbeat of the second session that has bad samples; an empty
  // one if there is none within 10 s.
  v1::Heartbeat Wait() {
    const MonotonicTime until = Clock::Real().Now() + std::chrono::seconds(10);
    MutexLock lock(&mu_);
    while (got_.counted_bad_samples().empty())
      if (!changed_.WaitUntil(&mu_, until)) break;
    return got_;
  }

 private:
  std::atomic<int> sessions_ = 0;
  Mutex mu_;
  CondVar changed_;
  bool made_ ABSL_GUARDED_BY(mu_) = false;
  v1::Heartbeat got_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<rpc::Server> server_;
};

// Tells its first session more than it can keep, and counts sessions.
class TalkativeCoordinator final : public v1::CoordinatorService::Service {
 public:
  TalkativeCoordinator()
      : server_(rpc::Server::Start(
                    {.address = fmt::format(
                         "unix-abstract:leat-talkative-test-{}", getpid())},
                    {}, {this})
                    .value()) {}

  grpc::Status WorkerSession(grpc::ServerContext*, Stream* stream) override {
    v1::WorkerSessionRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    v1::WorkerSessionResponse message;
    message.mutable_welcome();
    stream->Write(message);
    const bool first = sessions_++ == 0;
    if (first) {
      message.mutable_owned_shards()->set_dataset_id(std::string(300, 'd'));
      for (int i = 0; i < 20'000; ++i) stream->Write(message);
    }
    {
      MutexLock lock(&mu_);
      (first ? told_ : again_) = true;
      changed_.NotifyAll();
    }
    while (stream->Read(&request)) continue;
    return grpc::Status::OK;
  }

  const std::string& address() const { return server_->address(); }
  void WaitTold() { Wait(&told_); }
  // Returns whether there is a second session within 10 s.
  bool WaitAgain() { return Wait(&again_); }

 private:
  bool Wait(const bool* what) {
    const MonotonicTime until = Clock::Real().Now() + std::chrono::seconds(10);
    MutexLock lock(&mu_);
    while (!*what)
      if (!changed_.WaitUntil(&mu_, until)) break;
    return *what;
  }

  std::atomic<int> sessions_ = 0;
  Mutex mu_;
  CondVar changed_;
  bool told_ = false, again_ = false;  // under mu_
  std::unique_ptr<rpc::Server> server_;
};

TEST(Session, WhatCannotBeKeptIsToldAnewOnAnotherStream) {
  TalkativeCoordinator coordinator;
  CoordinatorClient client({.address = coordinator.address()}, {});
  SessionEvents events;
  events.make_heartbeat = [&] {
    coordinator.WaitTold();
    return v1::Heartbeat();
  };
  events.heartbeat_lost = [](const v1::Heartbeat&) {};
  events.on_owned_shards = [](const v1::OwnedShards&) {};
  Session session({}, std::move(events), &client);
  EXPECT_TRUE(coordinator.WaitAgain());
  session.Leave();
}

TEST(Session, BadSamplesThatAStreamMayHaveLostAreToldOnTheNext) {
  BreakingCoordinator coordinator;
  CoordinatorClient client({.address = coordinator.address()}, {});
  v1::Heartbeat next;  // the session's thread's
  next.add_bad_samples()->set_job("j");
  next.mutable_bad_samples(0)->add_samples()->set_sample(7);
  next.add_counted_bad_samples()->add_samples(7);
  int made = 0;
  SessionEvents events;
  events.make_heartbeat = [&] {
    if (++made == 2) coordinator.SetMade();
    return std::exchange(next, {});
  };
  events.heartbeat_lost = [&](const v1::Heartbeat& lost) {
    next.MergeFrom(lost);
  };
  Session session({}, std::move(events), &client);
  const v1::Heartbeat got = coordinator.Wait();
  session.Leave();
  ASSERT_EQ(got.bad_samples_size(), 1);
  EXPECT_EQ(got.bad_samples(0).samples(0).sample(), 7u);
  ASSERT_EQ(got.counted_bad_samples_size(), 1);
  EXPECT_EQ(got.counted_bad_samples(0).samples(0), 7u);
}

}  // namespace
}  // namespace leat::worker
