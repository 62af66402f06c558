// SPDX-License-Identifier: Apache-2.0
//
// SpanRelay: spans of consumers, from their sessions to the collecting call. No
// call can reach a trainer's process, so the request goes through its session:
//
//   TraceService/CollectSpans ─► Begin ─► Ask of each session of the plan
//   ConsumerSpans of a session ─► Add ─► the collection ─► Finish ─► the answer
//
// Spans are kept while their collection lasts. Thread-safe; Asks are called
// without the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "leat/v1/coordinator.pb.h"
#include "rpc/tracing/trace_calls.h"

namespace leat::server {

class SpanRelay {
 public:
  static constexpr size_t kMaxConsumers = 64;  // asked for one collection
  static constexpr size_t kMaxText = 256;      // of a span
  // How late a consumer's spans may be after the collection's time.
  static constexpr Duration kGrace = std::chrono::seconds(2);
  // Must not block.
  using Ask = std::function<void(const v1::TraceConsumer&)>;

  // Adds a consumer's session. `id` is the session's.
  void Join(uint64_t id, std::string plan_hash, std::string consumer, Ask ask);
  void Leave(uint64_t id);
  // Takes a session's spans. Drops spans that were not requested from it, and
  // spans whose texts are too long. They are attributed to the session's
  // consumer, whatever they say.
  void Add(uint64_t id, v1::ConsumerSpans spans);

  // Sends the request to the plan's sessions. REQUIRES: this outlives the
  // collection.
  std::unique_ptr<rpc::SpanCollection> Begin(
      const v1::CollectSpansRequest& request);

 private:
  class Collection;
  struct Session {
    std::string plan_hash, consumer;
    Ask ask;
  };
  struct Open {
    std::map<uint64_t, uint32_t> left;  // per session: spans it may still send
    v1::CollectSpansResponse spans;
  };
  // The session sends no more spans.
  void End(Open* open, uint64_t session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  CondVar changed_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;  // collection
  std::map<uint64_t, Session> sessions_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Open> open_ ABSL_GUARDED_BY(mu_);  // by collection
};

}  // namespace leat::server
