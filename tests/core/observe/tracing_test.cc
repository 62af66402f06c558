// SPDX-License-Identifier: Apache-2.0
#include "core/observe/tracing.h"

#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;

const std::string kPlan(32, 'p');

std::vector<Span> All(SpanBuffer& buffer) {
  return buffer.Take(1000, 0, MonotonicTime::min());
}

TEST(Tracing, TheSameStepsAreTracedEverywhereAndSmallRatiosAreSubsets) {
  int few = 0, many = 0;
  for (uint64_t step = 0; step < 20'000; ++step) {
    const bool is_few = IsTraced(kPlan, 3, step, 0.01);
    const bool is_many = IsTraced(kPlan, 3, step, 0.1);
    EXPECT_EQ(is_few, IsTraced(kPlan, 3, step, 0.01));
    if (is_few) {
      EXPECT_TRUE(is_many) << step;
    }
    few += is_few ? 1 : 0;
    many += is_many ? 1 : 0;
    EXPECT_TRUE(IsTraced(kPlan, 3, step, 1));
    EXPECT_FALSE(IsTraced(kPlan, 3, step, 0));
  }
  EXPECT_NEAR(few, 200, 60);
  EXPECT_NEAR(many, 2000, 180);
}

TEST(Tracing, IdsAreFunctionsOfTheStepAndDiffer) {
  std::set<uint64_t> lows;
  for (uint64_t epoch = 0; epoch < 10; ++epoch)
    for (uint64_t step = 0; step < 100; ++step) {
      EXPECT_EQ(TraceIdOf(kPlan, epoch, step), TraceIdOf(kPlan, epoch, step));
      lows.insert(TraceIdOf(kPlan, epoch, step).low);
    }
  EXPECT_EQ(lows.size(), 1000u);
  EXPECT_NE(TraceIdOf(kPlan, 0, 1), TraceIdOf(std::string(32, 'q'), 0, 1));
}

TEST(Tracing, ConsumerAndWorkerDeriveTheSameParents) {
  Tracer consumer(Clock::Real()), worker(Clock::Real());
  const auto at_consumer = consumer.Listen({}, 10);
  const auto at_worker = worker.Listen({}, 10);
  const auto here = consumer.Step(kPlan, "job", "host/1/1", 2, 5);
  const auto there = worker.Step(kPlan, "its name", "host/1/1", 2, 5);
  ASSERT_NE(here, nullptr);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(here->info().trace, there->info().trace);
  EXPECT_EQ(here->RequestId(17), there->RequestId(17));
  EXPECT_NE(here->RequestId(17), there->RequestId(18));
  EXPECT_NE(there->RowsId(17, 1), there->RowsId(17, 2));
  const auto other = worker.Step(kPlan, "job", "host/2/1", 2, 5);
  EXPECT_EQ(other->info().trace, here->info().trace);
  EXPECT_NE(other->RequestId(17), here->RequestId(17));
  EXPECT_NE(other->StepId(), here->StepId());
}

TEST(Tracing, NobodyListensAndNothingIsMade) {
  Tracer tracer(Clock::Real());
  EXPECT_EQ(tracer.Step(kPlan, "job", "c", 0, 0), nullptr);
  const auto buffer = tracer.Listen({.plan_hash = kPlan}, 10);
  EXPECT_NE(tracer.Step(kPlan, "job", "c", 0, 0), nullptr);
  EXPECT_EQ(tracer.Step(std::string(32, 'q'), "job", "c", 0, 0), nullptr);
  const auto step = tracer.Step(kPlan, "job", "c", 0, 0);
  tracer.Leave(buffer);
  EXPECT_EQ(tracer.Step(kPlan, "job", "c", 0, 0), nullptr);
  step->Record({.of = nullptr, .kind = SpanKind::kRow});  // harmless
}

TEST(Tracing, AListenerMayWantOneConsumer) {
  Tracer tracer(Clock::Real(), /*max_listeners=*/1);
  const auto buffer = tracer.Listen({.consumer = "c"}, 10);
  EXPECT_EQ(tracer.Listen({}, 10), nullptr);
  EXPECT_EQ(tracer.Step(kPlan, "job", "d", 0, 0), nullptr);
  EXPECT_NE(tracer.Step(kPlan, "job", "c", 0, 0), nullptr);
}

TEST(Tracing, EveryListenerGetsASpanAndTooManyAreRefused) {
  Tracer tracer(Clock::Real());
  std::vector<std::shared_ptr<SpanBuffer>> buffers;
  for (size_t i = 0; i < Tracer::kMaxListeners; ++i)
    buffers.push_back(tracer.Listen({}, 10));
  EXPECT_EQ(tracer.Listen({}, 10), nullptr);
  tracer.Step(kPlan, "job", "c", 0, 0)
      ->Record({.of = nullptr, .kind = SpanKind::kQueue, .rows = 3});
  for (const auto& buffer : buffers) {
    const std::vector<Span> spans = All(*buffer);
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(spans[0].rows, 3u);
    EXPECT_NE(spans[0].id, 0u);
  }
}

TEST(Tracing, SpansThatNobodyTakesEndWithTheirListener) {
  Tracer tracer(Clock::Real());
  std::weak_ptr<SpanBuffer> gone;
  {
    const auto buffer = tracer.Listen({}, 10);
    gone = buffer;
    tracer.Step(kPlan, "job", "c", 0, 0)
        ->Record({.of = nullptr, .kind = SpanKind::kQueue});
    tracer.Leave(buffer);
  }
  EXPECT_TRUE(gone.expired());
}

TEST(Tracing, AFullBufferDropsAndCounts) {
  SpanBuffer buffer(2);
  for (uint64_t i = 1; i <= 5; ++i) buffer.Add({.of = nullptr, .id = i});
  EXPECT_EQ(buffer.dropped(), 3u);
  EXPECT_EQ(buffer.Take(1, 0, MonotonicTime::min()).at(0).id, 1u);
  buffer.Add({.of = nullptr, .id = 6});
  std::vector<uint64_t> ids;
  for (const Span& span : All(buffer)) ids.push_back(span.id);
  EXPECT_THAT(ids, ElementsAre(2u, 6u));
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.dropped(), 3u);
}

TEST(Tracing, AWakeEndsAWaitForSpans) {
  SpanBuffer buffer(2);
  std::thread waker([&] { buffer.Wake(); });
  EXPECT_TRUE(buffer.Take(1, 1, MonotonicTime::max()).empty());
  waker.join();
}

TEST(Tracing, LaterStepsFollowAWallClockThatWasSet) {
  class SetClock final : public FakeClock {
   public:
    WallTime WallNow() const override { return FakeClock::WallNow() + by; }
    std::chrono::seconds by{0};
  };
  SetClock clock;
  Tracer tracer(clock);
  const auto buffer = tracer.Listen({}, 10);
  const auto before = tracer.Step(kPlan, "job", "c", 1, 2);
  clock.by = std::chrono::seconds(-5);
  const auto after = tracer.Step(kPlan, "job", "c", 1, 3);
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(before->Unix(clock.Now()), 3600 * kSecond);
  EXPECT_EQ(after->Unix(clock.Now()), 3595 * kSecond);
}

TEST(Tracing, StagesOfAThreadAreSpansBelowTheScopesOwn) {
  FakeClock clock;
  StageClocks clocks(clock);
  Tracer tracer(clock);
  const auto buffer = tracer.Listen({}, 10);
  const StageThread enrolled(&clocks);
  const auto step = tracer.Step(kPlan, "job", "c", 1, 2);
  {
    SpanScope row(step, SpanKind::kRow, 77, 1, clock);
    clock.Advance(nanoseconds(10));
    {
      StageScope read(Stage::kRead);
      clock.Advance(nanoseconds(20));
      {
        StageScope open(Stage::kOpen);
        clock.Advance(nanoseconds(30));
      }
    }
    clock.Advance(nanoseconds(40));
  }
  { StageScope unseen(Stage::kDecode); }
  const std::vector<Span> spans = All(*buffer);
  ASSERT_EQ(spans.size(), 3u);
  const Span &open = spans[0], &read = spans[1], &row = spans[2];
  EXPECT_EQ(open.kind, SpanKind::kOpen);
  EXPECT_EQ(read.kind, SpanKind::kRead);
  EXPECT_EQ(row.kind, SpanKind::kRow);
  EXPECT_EQ(row.parent, 77u);
  EXPECT_EQ(read.parent, row.id);
  EXPECT_EQ(open.parent, row.id);
  EXPECT_EQ(row.end_ns - row.begin_ns, 100);
  EXPECT_EQ(read.begin_ns - row.begin_ns, 10);
  EXPECT_EQ(read.end_ns - read.begin_ns, 50);
  EXPECT_EQ(open.end_ns - open.begin_ns, 30);
  EXPECT_EQ(row.thread, read.thread);
  EXPECT_EQ(row.of->step, 2u);
  EXPECT_EQ(row.begin_ns, step->Unix(clock.Now()) - 100);
}

TEST(Tracing, AScopeWithoutAStepDoesNothing) {
  FakeClock clock;
  StageClocks clocks(clock);
  Tracer tracer(clock);
  const auto buffer = tracer.Listen({}, 10);
  const StageThread enrolled(&clocks);
  const auto step = tracer.Step(kPlan, "job", "c", 1, 2);
  {
    const SpanScope row(nullptr, SpanKind::kRow, 77, 1, clock);
    const StageScope read(Stage::kRead);
    clock.Advance(nanoseconds(10));
  }
  EXPECT_TRUE(All(*buffer).empty());
  { const SpanScope row(step, SpanKind::kRow, 77, 1, clock); }
  EXPECT_EQ(All(*buffer).size(), 1u) << "but with a step";
}

TEST(Tracing, StagesAndSpansHaveTheSameNames) {
  for (uint8_t i = 1; i < kStages; ++i)
    EXPECT_EQ(Name(static_cast<Stage>(i)), Name(static_cast<SpanKind>(i)));
}

}  // namespace
}  // namespace leat
