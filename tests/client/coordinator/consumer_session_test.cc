// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/consumer_session.h"

#include <latch>
#include <thread>
#include <vector>

#include "client/batch/revocable.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A coordinator that ends each stream on request.
class SessionTest : public ::testing::Test {
 protected:
  class Stream : public Session::Stream {
   public:
    Stream(std::vector<v1::ConsumerSessionRequest>* sent,
           std::function<void()> on_sent, std::function<void()> on_finish)
        : sent_(sent),
          on_sent_(std::move(on_sent)),
          on_finish_(std::move(on_finish)) {}
    absl::Status Send(v1::ConsumerSessionRequest request) override {
      sent_->push_back(std::move(request));
      on_sent_();
      return absl::OkStatus();
    }
    size_t queued() const override { return 0; }
    void Close(absl::Status) override { on_finish_(); }
    void Cancel() override {}

   private:
    std::vector<v1::ConsumerSessionRequest>* const sent_;
    const std::function<void()> on_sent_, on_finish_;
  };
  void Begin(const Session::Config& config) {
    session_.emplace(
        config, v1::OpenConsumer(),
        Session::Callbacks{
            .on_assignment = [this](const v1::Assignment&) { OnAssignment(); },
            .on_failure =
                [this](const absl::Status& status) { failure_ = status; },
            .on_lost = [this](const absl::Status&) { ++lost_; },
            .stats = [] { return v1::ConsumerStats(); },
            .unreached =
                [this] { return std::exchange(unreached_, std::nullopt); },
            .on_trace =
                [this](const v1::TraceConsumer& wanted) {
                  traced_ = wanted.collection();
                },
            .spans =
                [this](MonotonicTime) { return std::exchange(spans_, {}); },
            .on_settled = [this] { ++settled_; },
            .settles = [this](bool at_stop) { return settles_(at_stop); }},
        [this](std::shared_ptr<Session::Receiver> receiver) {
          ++opened_;
          receiver_ = std::move(receiver);
          return std::make_shared<Stream>(
              &sent_, [this] { on_sent_(); }, [this] { on_finish_(); });
        });
  }
  // Returns how long after the end of a stream the next one is opened.
  Duration WaitAfterEnd() {
    const int opened = opened_;
    receiver_->OnClosed(Unavailable("gone"));
    const MonotonicTime end = clock_.Now();
    while (opened_ == opened) {
      const MonotonicTime due = session_->Tick(clock_.Now());
      if (opened_ == opened) clock_.Advance(due - clock_.Now());
    }
    return clock_.Now() - end;
  }
  virtual void OnAssignment() {}

  FakeClock clock_;
  int opened_ = 0, lost_ = 0;
  uint64_t traced_ = 0;
  SpanReporter::Due spans_;
  std::optional<v1::UnreachedWorkers> unreached_;  // to be sent, once
  std::vector<v1::ConsumerSessionRequest> sent_;
  absl::Status failure_;
  int settled_ = 0;
  std::function<bool(bool)> settles_ = [](bool) { return false; };
  std::function<void()> on_sent_ = [] {};
  // The coordinator ends the stream when it has read all.
  std::function<void()> on_finish_ = [this] {
    receiver_->OnClosed(absl::OkStatus());
  };
  std::shared_ptr<Session::Receiver> receiver_;
  std::optional<Session> session_;
};

TEST_F(SessionTest, WaitsLongerEachTimeAndNotAsLongAsTheOthers) {
  double draw = 0;
  Begin({.random = [&] { return draw; }});
  session_->Tick(clock_.Now());
  EXPECT_EQ(WaitAfterEnd(), milliseconds(100));
  EXPECT_EQ(WaitAfterEnd(), milliseconds(200));
  draw = 0.5;
  EXPECT_EQ(WaitAfterEnd(), milliseconds(300));
  EXPECT_EQ(WaitAfterEnd(), milliseconds(600));
  EXPECT_EQ(lost_, 4);
  // After a stream that has delivered, the backoff starts anew.
  receiver_->OnMessage(v1::ConsumerSessionResponse());
  session_->Tick(clock_.Now());
  EXPECT_EQ(WaitAfterEnd(), milliseconds(75));
}

TEST_F(SessionTest, AFailureOfTheJobIsToldWithItsCodeAndIsAlwaysAnError) {
  Begin({});
  session_->Tick(clock_.Now());
  v1::ConsumerSessionResponse response;
  response.mutable_failure()->set_message("too many");
  for (const int none : {0, -1, 17, 1 << 20}) {
    response.mutable_failure()->set_code(none);
    receiver_->OnMessage(response);
    EXPECT_TRUE(absl::IsUnknown(failure_)) << none << failure_;
  }
  response.mutable_failure()->set_code(15);
  receiver_->OnMessage(response);
  EXPECT_EQ(failure_, DataLoss("too many"));
}

TEST_F(SessionTest, SpansGoOutWhenTheyAreDueAndNotWithReports) {
  Begin({});
  const MonotonicTime report = session_->Tick(clock_.Now());
  v1::ConsumerSessionResponse response;
  response.mutable_trace()->set_collection(9);
  receiver_->OnMessage(response);
  EXPECT_EQ(traced_, 9u);
  spans_.messages.resize(2);
  spans_.next = clock_.Now() + milliseconds(10);
  sent_.clear();
  EXPECT_EQ(session_->Tick(clock_.Now()), clock_.Now() + milliseconds(10));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(sent_[1].has_spans());
  EXPECT_EQ(session_->Tick(clock_.Now()), report);
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(SessionTest, WhomItDoesNotReachGoesOutWithAReportAtOnce) {
  Begin({});
  const MonotonicTime report = session_->Tick(clock_.Now());
  sent_.clear();
  unreached_.emplace();
  unreached_->add_workers()->set_worker("w");
  clock_.Advance(milliseconds(10));
  EXPECT_GT(session_->Tick(clock_.Now()), report);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].has_stats());
  EXPECT_EQ(sent_[0].unreached().workers(0).worker(), "w");
  session_->Tick(clock_.Now());
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(SessionTest, AVerdictIsAskedForOnceAStream) {
  Begin({});
  const MonotonicTime report = session_->Tick(clock_.Now());
  sent_.clear();
  settles_ = [](bool at_stop) { return !at_stop; };
  EXPECT_GT(session_->Tick(clock_.Now()), report - seconds(1));
  session_->Tick(clock_.Now());
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].settle());
  EXPECT_TRUE(sent_[0].has_stats());
  v1::ConsumerSessionResponse response;
  response.set_settled(true);
  receiver_->OnMessage(response);
  EXPECT_EQ(settled_, 1);
  WaitAfterEnd();
  sent_.clear();
  session_->Tick(clock_.Now());
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].settle());
}

TEST_F(SessionTest, StopReportsOnceMoreAndWaitsForTheVerdict) {
  Begin({.farewell = std::chrono::minutes(2)});
  session_->Tick(clock_.Now());
  sent_.clear();
  settles_ = [](bool at_stop) { return at_stop; };
  on_sent_ = [this] {
    v1::ConsumerSessionResponse response;
    response.mutable_failure()->set_code(15);
    response.set_settled(true);
    receiver_->OnMessage(response);
  };
  const MonotonicTime begin = Clock::Real().Now();
  session_->Stop();
  EXPECT_LT(Clock::Real().Now() - begin, seconds(60)) << "it has come";
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].has_stats());
  EXPECT_TRUE(sent_[0].settle());
}

TEST_F(SessionTest, StopDoesNotWaitLongForACoordinatorThatHangs) {
  Begin({.farewell = milliseconds(1)});
  session_->Tick(clock_.Now());
  on_finish_ = [] {};
  sent_.clear();
  session_->Stop();
  EXPECT_EQ(sent_.size(), 1u);
  receiver_->OnClosed(Unavailable("gone"));
}

TEST_F(SessionTest, AfterStopNothingIsTold) {
  Begin({});
  session_->Tick(clock_.Now());
  on_finish_ = [this] { receiver_->OnClosed(Unavailable("gone")); };
  session_->Stop();
  EXPECT_EQ(lost_, 0);
  EXPECT_EQ(session_->Tick(clock_.Now()), MonotonicTime::max());
}

// Stop waits for the callback, which may take locks of its own.
class SessionStopTest : public SessionTest {
 protected:
  void OnAssignment() override {
    running_.count_down();
    go_on_.wait();
    ended_ = true;
  }
  std::latch running_{1}, go_on_{1};
  std::atomic<bool> ended_ = false;
};

TEST_F(SessionStopTest, StopWaitsForACallbackThatHoldsNoLock) {
  Begin({});
  session_->Tick(clock_.Now());
  std::thread deliver([this] {
    v1::ConsumerSessionResponse response;
    response.mutable_assignment();
    receiver_->OnMessage(response);
  });
  running_.wait();
  // A lock held during the callback would make this wait for ever.
  EXPECT_LT(session_->Tick(clock_.Now()), MonotonicTime::max());
  std::thread release([this] { go_on_.count_down(); });
  session_->Stop();
  EXPECT_TRUE(ended_);
  deliver.join();
  release.join();
}

TEST(Revocable, IsCalledUntilItIsTakenBack) {
  int calls = 0;
  Revocable<int> callback;
  callback.Call(1);
  callback.Set([&](int n) { calls += n; });
  callback.Call(2);
  callback.Call(3);
  EXPECT_EQ(calls, 5);
  callback.Set(nullptr);
  callback.Call(4);
  EXPECT_EQ(calls, 5);
}

TEST(Revocable, SetWaitsForACallUnderWay) {
  std::latch running(1), go_on(1);
  std::atomic<bool> ended = false;
  Revocable<> callback([&] {
    running.count_down();
    go_on.wait();
    ended = true;
  });
  std::thread caller([&] { callback.Call(); });
  running.wait();
  std::thread release([&] { go_on.count_down(); });
  callback.Set(nullptr);
  EXPECT_TRUE(ended);
  caller.join();
  release.join();
}

}  // namespace
}  // namespace leat::client
