// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/span_reporter.h"

#include <algorithm>
#include <utility>

#include "rpc/tracing/trace_calls.h"
#include "rpc/wire/times.h"

namespace leat::client {

SpanReporter::~SpanReporter() {
  MutexLock lock(&mu_);
  for (const Collection& each : collections_) tracer_->Leave(each.buffer);
}

void SpanReporter::Begin(const v1::TraceConsumer& wanted, MonotonicTime now) {
  const Duration time =
      std::clamp(rpc::FromProto(wanted.duration()), Duration(0), kMaxTime);
  const double ratio = wanted.ratio() > 0 ? std::min(wanted.ratio(), 1.0) : 0.0;
  const size_t most = std::min<size_t>(wanted.max_spans(), kMaxSpans);
  MutexLock lock(&mu_);
  if (collections_.size() >= kMaxCollections) return;
  std::shared_ptr<SpanBuffer> buffer = tracer_->Listen(
      {.plan_hash = plan_hash_, .consumer = consumer_, .ratio = ratio}, most);
  if (buffer == nullptr) return;
  collections_.push_back({wanted.collection(), now + time, std::move(buffer)});
}

SpanReporter::Due SpanReporter::Take(MonotonicTime now) {
  Due due;
  MutexLock lock(&mu_);
  for (auto it = collections_.begin(); it != collections_.end();) {
    Collection& collection = *it;
    const bool over = now >= collection.end;
    if (over) tracer_->Leave(collection.buffer);
    bool last = false;
    while (due.messages.size() < kMessagesAtOnce && !last) {
      const std::vector<Span> spans =
          collection.buffer->Take(kSpansOfMessage, 0, MonotonicTime::min());
      last = over && collection.buffer->size() == 0;
      if (spans.empty() && !last) break;
      v1::ConsumerSpans& message = due.messages.emplace_back();
      message.set_collection(collection.number);
      message.set_last(last);
      if (last) message.set_dropped(collection.buffer->dropped());
      for (const Span& span : spans)
        rpc::SpanToProto(span, message.add_spans());
    }
    if (last) {
      it = collections_.erase(it);
      continue;
    }
    due.next = std::min(
        due.next, over ? now + kEvery : std::min(collection.end, now + kEvery));
    ++it;
  }
  return due;
}

}  // namespace leat::client
