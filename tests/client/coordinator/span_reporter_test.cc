// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/span_reporter.h"

#include <string>

#include "gtest/gtest.h"

namespace leat::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kPlan(32, 'p');

class SpanReporterTest : public ::testing::Test {
 protected:
  static v1::TraceConsumer Wanted(uint64_t collection, uint32_t max_spans) {
    v1::TraceConsumer wanted;
    wanted.set_collection(collection);
    wanted.mutable_duration()->set_seconds(1);
    wanted.set_ratio(1);
    wanted.set_max_spans(max_spans);
    return wanted;
  }
  std::shared_ptr<const TracedStep> Step(const std::string& consumer) {
    return tracer_.Step(kPlan, "job", consumer, 1, 2);
  }

  FakeClock clock_;
  Tracer tracer_{clock_};
  SpanReporter reporter_{&tracer_, kPlan, "c"};
};

TEST_F(SpanReporterTest, NothingIsRecordedUntilSomebodyWantsIt) {
  EXPECT_EQ(Step("c"), nullptr);
  EXPECT_TRUE(reporter_.Take(clock_.Now()).messages.empty());
  EXPECT_EQ(reporter_.Take(clock_.Now()).next, MonotonicTime::max());
}

TEST_F(SpanReporterTest, SpansOfItsConsumerGoOutAndTheLastMessageSaysSo) {
  reporter_.Begin(Wanted(7, 3000), clock_.Now());
  EXPECT_EQ(Step("another"), nullptr);
  const auto step = Step("c");
  ASSERT_NE(step, nullptr);
  for (int i = 0; i < 1500; ++i)
    step->Record({.of = nullptr, .kind = SpanKind::kRequest, .worker = "w"});
  SpanReporter::Due due = reporter_.Take(clock_.Now());
  ASSERT_EQ(due.messages.size(), 2u);
  EXPECT_EQ(due.messages[0].collection(), 7u);
  EXPECT_EQ(due.messages[0].spans_size(), 1000);
  EXPECT_EQ(due.messages[0].spans(0).worker(), "w");
  EXPECT_EQ(due.messages[1].spans_size(), 500);
  EXPECT_FALSE(due.messages[1].last());
  EXPECT_EQ(due.next, clock_.Now() + SpanReporter::kEvery);
  clock_.Advance(milliseconds(900));
  EXPECT_EQ(reporter_.Take(clock_.Now()).next,
            clock_.Now() + milliseconds(100));
  clock_.Advance(milliseconds(100));
  due = reporter_.Take(clock_.Now());
  ASSERT_EQ(due.messages.size(), 1u);
  EXPECT_TRUE(due.messages[0].last());
  EXPECT_EQ(due.next, MonotonicTime::max());
  EXPECT_EQ(Step("c"), nullptr);
}

TEST_F(SpanReporterTest, ALotGoesOutInPartsAndWhatFindsNoRoomIsCounted) {
  reporter_.Begin(Wanted(1, 1'000'000), clock_.Now());
  const auto step = Step("c");
  for (size_t i = 0; i < SpanReporter::kMaxSpans + 5; ++i)
    step->Record({.of = nullptr, .kind = SpanKind::kRequest});
  clock_.Advance(seconds(1));
  size_t spans = 0;
  uint64_t dropped = 0;
  for (bool last = false; !last;) {
    const SpanReporter::Due due = reporter_.Take(clock_.Now());
    ASSERT_FALSE(due.messages.empty());
    EXPECT_LE(due.messages.size(), SpanReporter::kMessagesAtOnce);
    for (const v1::ConsumerSpans& message : due.messages) {
      spans += static_cast<size_t>(message.spans_size());
      dropped += message.dropped();
      last = message.last();
    }
    if (!last) {
      EXPECT_LE(due.next, clock_.Now() + SpanReporter::kEvery);
    }
  }
  EXPECT_EQ(spans, SpanReporter::kMaxSpans);
  EXPECT_EQ(dropped, 5u);
}

TEST_F(SpanReporterTest, OddRequestsAreBounded) {
  v1::TraceConsumer odd = Wanted(1, 0);
  odd.mutable_duration()->set_seconds(-5);
  odd.set_ratio(std::nan(""));
  reporter_.Begin(odd, clock_.Now());
  EXPECT_EQ(Step("c"), nullptr);
  odd.mutable_duration()->set_seconds(int64_t{1} << 62);
  for (int i = 0; i < 10; ++i) reporter_.Begin(odd, clock_.Now());
  clock_.Advance(SpanReporter::kMaxTime);
  EXPECT_EQ(reporter_.Take(clock_.Now()).messages.size(),
            SpanReporter::kMaxCollections);
}

}  // namespace
}  // namespace leat::client
