// SPDX-License-Identifier: Apache-2.0
//
// Spans of requests whose step is traced.
#include <map>
#include <vector>

#include "core/observe/stages.h"
#include "core/observe/tracing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fixture.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;

template <class Base>
class Traced : public Base {
 protected:
  RowRequest Ask(uint64_t id, uint32_t rows) {
    RowRequest request = MakeRequest(id, 3, 7, 100, rows);
    request.trace = step_;
    return request;
  }
  std::multimap<SpanKind, Span> Spans() {
    std::multimap<SpanKind, Span> spans;
    for (Span& span : buffer_->Take(1000, 0, MonotonicTime::min()))
      spans.emplace(span.kind, std::move(span));
    return spans;
  }
  Tracer tracer_{this->clock_};
  std::shared_ptr<SpanBuffer> buffer_ = tracer_.Listen({}, 1000);
  std::shared_ptr<const TracedStep> step_ =
      tracer_.Step(std::string(32, 'p'), "a", "host/1/1", 3, 7);
};

using TracedTest = Traced<PlacedTest>;
using TracedStageTest = Traced<StagedTest>;

TEST_F(TracedTest, AGroupsSpansLieInsideOfItsOwnAndBelowItsAsk) {
  StageClocks clocks(clock_);
  const StageThread enrolled(&clocks);
  auto work = std::make_shared<FakeWork>("a");
  work->on_compute = [&](uint64_t, uint64_t) {
    const StageScope decode(Stage::kDecode);
    clock_.Advance(milliseconds(2));
  };
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_.Ask(id, Ask(9, 2)).ok());
  clock_.Advance(milliseconds(10));
  RunAll();
  clock_.Advance(milliseconds(5));
  sink_->KeepNothing();
  sink_->Take();  // sends it
  const auto spans = Spans();
  ASSERT_EQ(spans.count(SpanKind::kRows), 1u);
  const Span& rows = spans.find(SpanKind::kRows)->second;
  EXPECT_EQ(rows.parent, step_->RequestId(9));
  EXPECT_EQ(rows.id, step_->RowsId(9, 1));
  EXPECT_EQ(rows.rows, 2u);
  EXPECT_FALSE(rows.failed);
  const auto length = [](const Span& span) {
    return span.end_ns - span.begin_ns;
  };
  EXPECT_EQ(length(rows), 19'000'000);
  EXPECT_EQ(length(spans.find(SpanKind::kQueue)->second), 10'000'000);
  EXPECT_EQ(length(spans.find(SpanKind::kSend)->second), 5'000'000);
  EXPECT_EQ(spans.count(SpanKind::kRow), 2u);
  EXPECT_EQ(spans.count(SpanKind::kDecode), 2u);
  std::map<uint64_t, const Span*> by_id;
  for (const auto& [kind, span] : spans) by_id[span.id] = &span;
  for (const auto& [kind, span] : spans) {
    if (kind == SpanKind::kRows) continue;
    ASSERT_TRUE(by_id.contains(span.parent)) << Name(kind);
    EXPECT_GE(span.begin_ns, by_id[span.parent]->begin_ns) << Name(kind);
    EXPECT_LE(span.end_ns, by_id[span.parent]->end_ns) << Name(kind);
  }
}

TEST_F(TracedTest, AStepThatIsNotTracedHasNoSpans) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_.Ask(id, MakeRequest(9, 3, 7, 0, 2)).ok());
  RunAll();
  sink_->Take();
  EXPECT_TRUE(Spans().empty());
}

TEST_F(TracedTest, ARowThatFailsSaysSo) {
  auto work = std::make_shared<FakeWork>("a");
  work->bad_sample = 101;
  const auto id = Open(work);
  ASSERT_TRUE(scheduler_.Ask(id, Ask(9, 2)).ok());
  RunAll();
  sink_->Take();
  const auto spans = Spans();
  EXPECT_TRUE(spans.find(SpanKind::kRows)->second.failed);
  int failed = 0;
  for (const auto& [kind, span] : spans)
    failed += kind == SpanKind::kRow && span.failed ? 1 : 0;
  EXPECT_EQ(failed, 1);
}

TEST_F(TracedTest, WhatWasWithdrawnHasNoGroup) {
  const auto id = Open(std::make_shared<FakeWork>("a"));
  ASSERT_TRUE(scheduler_.Ask(id, Ask(9, 4)).ok());
  RunAll(1);
  scheduler_.Cancel(id, 9);
  RunAll();
  EXPECT_EQ(Spans().count(SpanKind::kRows), 0u);
}

TEST_F(TracedStageTest, ADevicesTimeIsASpanOfEachGroup) {
  const auto id = Open(Staged());
  ASSERT_TRUE(scheduler_.Ask(id, Ask(9, 4)).ok());
  RunAll();
  clock_.Advance(milliseconds(3));
  ASSERT_TRUE(device_.FinishOne());
  sink_->Take();
  const auto spans = Spans();
  ASSERT_EQ(spans.count(SpanKind::kDevice), 1u);
  const Span& device = spans.find(SpanKind::kDevice)->second;
  EXPECT_EQ(device.end_ns - device.begin_ns, 3'000'000);
  EXPECT_EQ(device.parent, step_->RowsId(9, 1));
  EXPECT_EQ(device.rows, 4u);
}

}  // namespace
}  // namespace leat::worker
