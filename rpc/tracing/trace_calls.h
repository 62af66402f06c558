// SPDX-License-Identifier: Apache-2.0
//
// TraceCalls implements leat.v1.TraceService. Each call has a collection until
// its time is over; one thread then answers it.
//
//   CollectSpans ─► Begin ─► the list of calls ─► thread ─► Finish
//
// Stop answers all calls, so that the server can shut down.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/observe/tracing.h"
#include "leat/v1/trace.pb.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace leat::rpc {

// Sets `to` from a listener's span.
void SpanToProto(const Span& span, v1::CollectedSpan* to);

// Collects the spans for one call. Thread-compatible.
class SpanCollection {
 public:
  virtual ~SpanCollection() = default;  // ends the collection
  // The time is over: adds the collected spans. Called once; may wait for
  // seconds.
  virtual void Finish(v1::CollectSpansResponse* to) = 0;
};

// Returns a collection of a tracer of this process. nullptr: it has too many
// listeners.
std::unique_ptr<SpanCollection> CollectFrom(
    Tracer* tracer, const v1::CollectSpansRequest& request);

class TraceCalls {
 public:
  static constexpr size_t kMaxCalls = 4;       // at a time
  static constexpr size_t kMaxSpans = 20'000;  // in a call
  static constexpr int64_t kMaxSeconds = 60;

  // Decides whether a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // Starts a collection for a checked request, on any thread; nullptr: there
  // are too many.
  using Begin = std::function<std::unique_ptr<SpanCollection>(
      const v1::CollectSpansRequest&)>;

  // `clock` outlives it.
  TraceCalls(Admit admit, Begin begin, const Clock& clock);
  // REQUIRES: the server has shut down.
  ~TraceCalls();

  // kResourceExhausted: its thread could not be created.
  const absl::Status& started() const;
  grpc::Service* service();
  // Answers all calls, and later ones, with kUnavailable.
  void Stop();

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::rpc
