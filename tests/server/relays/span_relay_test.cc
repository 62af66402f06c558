// SPDX-License-Identifier: Apache-2.0
//
// Spans of consumers, from their sessions to the collecting call.
#include "server/relays/span_relay.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace leat::server {
namespace {

class SpanRelayTest : public testing::Test {
 protected:
  void Join(uint64_t id, const std::string& plan) {
    relay_.Join(id, plan, "consumer-" + std::to_string(id),
                [this, id](const v1::TraceConsumer& wanted) {
                  asked_.emplace_back(id, wanted);
                });
  }
  std::unique_ptr<rpc::SpanCollection> Begin(const std::string& plan,
                                             uint32_t max_spans = 10) {
    v1::CollectSpansRequest request;
    request.set_plan_hash(plan);
    request.set_ratio(0.5);
    request.set_max_spans(max_spans);
    return relay_.Begin(request);
  }
  // Makes spans of a collection that name a wrong consumer.
  static v1::ConsumerSpans Spans(uint64_t collection, int count, bool last) {
    v1::ConsumerSpans spans;
    spans.set_collection(collection);
    for (int i = 0; i < count; ++i) {
      spans.add_spans()->set_consumer("another");
      spans.mutable_spans(i)->set_worker("w");
    }
    spans.set_last(last);
    return spans;
  }
  static v1::CollectSpansResponse Finish(rpc::SpanCollection& collection) {
    v1::CollectSpansResponse response;
    collection.Finish(&response);
    return response;
  }

  std::vector<std::pair<uint64_t, v1::TraceConsumer>> asked_;
  SpanRelay relay_;
};

TEST_F(SpanRelayTest,
       ConsumersOfThePlanAreAskedAndTheirSpansComeUnderTheirName) {
  Join(1, "p");
  Join(2, "q");
  Join(3, "p");
  const auto collection = Begin("p");
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[1].first, 3u);
  EXPECT_EQ(asked_[1].second.max_spans(), 5u);
  EXPECT_EQ(asked_[1].second.ratio(), 0.5);
  const uint64_t number = asked_[0].second.collection();
  relay_.Add(1, Spans(number, 2, false));
  relay_.Add(2, Spans(number, 2, true));  // was not asked
  relay_.Add(3, Spans(number + 1, 2, true));
  relay_.Add(3, Spans(number, 1, true));
  relay_.Add(3, Spans(number, 1, true));  // has said that no more will come
  relay_.Add(1, Spans(number, 0, true));
  const v1::CollectSpansResponse response = Finish(*collection);
  ASSERT_EQ(response.spans_size(), 3);
  EXPECT_EQ(response.spans(0).consumer(), "consumer-1");
  EXPECT_EQ(response.spans(2).consumer(), "consumer-3");
  EXPECT_EQ(response.dropped(), 0u);
}

TEST_F(SpanRelayTest, WhatIsTooMuchIsDroppedAndCounted) {
  Join(1, "p");
  const auto collection = Begin("p", 3);
  v1::ConsumerSpans spans = Spans(asked_[0].second.collection(), 6, true);
  spans.mutable_spans(0)->set_worker(std::string(1000, 'x'));
  spans.set_dropped(7);
  relay_.Add(1, std::move(spans));
  const v1::CollectSpansResponse response = Finish(*collection);
  EXPECT_EQ(response.spans_size(), 3);
  EXPECT_EQ(response.dropped(), 7u + 3u);
}

TEST_F(SpanRelayTest, OneThatLeavesIsNotWaitedFor) {
  Join(1, "p");
  Join(2, "p");
  const auto collection = Begin("p");
  const uint64_t number = asked_[0].second.collection();
  relay_.Add(1, Spans(number, 1, false));
  relay_.Leave(1);
  std::thread other([&] { relay_.Add(2, Spans(number, 1, true)); });
  const MonotonicTime begin = Clock::Real().Now();
  EXPECT_EQ(Finish(*collection).spans_size(), 2);
  EXPECT_LT(Clock::Real().Now() - begin, SpanRelay::kGrace);
  other.join();
}

TEST_F(SpanRelayTest, SoManyConsumersAreAskedAndNoMore) {
  for (uint64_t id = 1; id <= 100; ++id) Join(id, "p");
  const auto collection = Begin("p", 20'000);
  EXPECT_EQ(asked_.size(), SpanRelay::kMaxConsumers);
  EXPECT_EQ(asked_[0].second.max_spans(), 20'000 / SpanRelay::kMaxConsumers);
}

TEST_F(SpanRelayTest, SpansOfACollectionThatIsOverAreNobodys) {
  Join(1, "p");
  Begin("p");  // and given up
  relay_.Add(1, Spans(asked_[0].second.collection(), 1, true));
  EXPECT_EQ(Finish(*Begin("q")).spans_size(), 0);
}

}  // namespace
}  // namespace leat::server
