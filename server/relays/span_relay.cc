// SPDX-License-Identifier: Apache-2.0
#include "server/relays/span_relay.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace leat::server {

class SpanRelay::Collection final : public rpc::SpanCollection {
 public:
  Collection(SpanRelay* relay, uint64_t number)
      : relay_(relay), number_(number) {}
  ~Collection() override {
    MutexLock lock(&relay_->mu_);
    relay_->open_.erase(number_);
  }

  // Waits for the sessions that may still send spans.
  void Finish(v1::CollectSpansResponse* to) override {
    const MonotonicTime end = Clock::Real().Now() + kGrace;
    MutexLock lock(&relay_->mu_);
    Open& open = relay_->open_.at(number_);
    while (!open.left.empty() && Clock::Real().Now() < end)
      relay_->changed_.WaitUntil(&relay_->mu_, end);
    to->Swap(&open.spans);
  }

 private:
  SpanRelay* const relay_;
  const uint64_t number_;
};

void SpanRelay::Join(uint64_t id, std::string plan_hash, std::string consumer,
                     Ask ask) {
  MutexLock lock(&mu_);
  sessions_[id] = {std::move(plan_hash), std::move(consumer), std::move(ask)};
}

void SpanRelay::Leave(uint64_t id) {
  MutexLock lock(&mu_);
  sessions_.erase(id);
  for (auto& [number, open] : open_) End(&open, id);
}

void SpanRelay::End(Open* open, uint64_t session) {
  if (open->left.erase(session) > 0) changed_.NotifyAll();
}

void SpanRelay::Add(uint64_t id, v1::ConsumerSpans spans) {
  MutexLock lock(&mu_);
  const auto found = open_.find(spans.collection());
  if (found == open_.end()) return;
  Open& open = found->second;
  const auto left = open.left.find(id);
  if (left == open.left.end()) return;
  uint64_t dropped = open.spans.dropped() + spans.dropped();
  for (v1::CollectedSpan& span : *spans.mutable_spans()) {
    if (left->second == 0 || span.trace_id().size() > kMaxText ||
        span.worker().size() > kMaxText) {
      ++dropped;
      continue;
    }
    --left->second;
    span.DiscardUnknownFields();
    span.set_consumer(sessions_.at(id).consumer);
    *open.spans.add_spans() = std::move(span);
  }
  open.spans.set_dropped(dropped);
  if (spans.last()) End(&open, id);
}

std::unique_ptr<rpc::SpanCollection> SpanRelay::Begin(
    const v1::CollectSpansRequest& request) {
  v1::TraceConsumer wanted;
  std::vector<Ask> asks;
  {
    MutexLock lock(&mu_);
    std::vector<uint64_t> asked;
    for (const auto& [id, session] : sessions_) {
      if (session.plan_hash != request.plan_hash()) continue;
      if (asked.size() == kMaxConsumers) break;
      asked.push_back(id);
      asks.push_back(session.ask);
    }
    wanted.set_collection(++last_);
    *wanted.mutable_duration() = request.duration();
    wanted.set_ratio(request.ratio());
    const auto sharers =
        static_cast<uint32_t>(std::max<size_t>(1, asks.size()));
    wanted.set_max_spans(std::max(1u, request.max_spans() / sharers));
    Open& open = open_[last_];
    for (const uint64_t id : asked) open.left[id] = wanted.max_spans();
  }
  auto collection = std::make_unique<Collection>(this, wanted.collection());
  for (const Ask& ask : asks) ask(wanted);
  return collection;
}

}  // namespace leat::server
