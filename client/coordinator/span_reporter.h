// SPDX-License-Identifier: Apache-2.0
//
// SpanReporter sends the spans of one consumer to the coordinator, while they
// are collected there (leat.v1.TraceConsumer). Between collections nothing is
// recorded.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/observe/tracing.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::client {

class SpanReporter {
 public:
  static constexpr size_t kMaxCollections = 4;  // at a time
  static constexpr size_t kMaxSpans = 20'000;   // per collection
  static constexpr size_t kSpansOfMessage = 1000;
  static constexpr size_t kMessagesAtOnce = 4;  // of the stream's queue
  static constexpr Duration kMaxTime = std::chrono::seconds(60);
  static constexpr Duration kEvery = std::chrono::milliseconds(250);

  // `tracer` outlives it.
  SpanReporter(Tracer* tracer, std::string plan_hash, std::string consumer)
      : tracer_(tracer),
        plan_hash_(std::move(plan_hash)),
        consumer_(std::move(consumer)) {}
  ~SpanReporter();

  // Starts a collection. Values out of bounds are clamped; nothing is collected
  // if kMaxCollections are active.
  void Begin(const v1::TraceConsumer& wanted, MonotonicTime now);

  struct Due {
    std::vector<v1::ConsumerSpans> messages;
    MonotonicTime next = MonotonicTime::max();
  };
  // Returns the messages to send now, and when to call again.
  Due Take(MonotonicTime now);

 private:
  struct Collection {
    uint64_t number;
    MonotonicTime end;
    std::shared_ptr<SpanBuffer> buffer;
  };

  Tracer* const tracer_;
  const std::string plan_hash_, consumer_;
  Mutex mu_;
  std::vector<Collection> collections_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
