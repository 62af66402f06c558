// SPDX-License-Identifier: Apache-2.0
//
// TraceCalls: leat.v1.TraceService. A call has a collection until its time is
// over; one thread answers those whose time is over.
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

// `to` becomes what a listener's span says.
void SpanToProto(const Span& span, v1::CollectedSpan* to);

// The spans that come for one call. Thread-compatible.
class SpanCollection {
 public:
  virtual ~SpanCollection() = default;  // no span comes any more
  // Its time is over: adds what has come. Called once; may wait for seconds.
  virtual void Finish(v1::CollectSpansResponse* to) = 0;
};

// Those of a tracer of this process. null: too many listen to it.
std::unique_ptr<SpanCollection> CollectFrom(
    Tracer* tracer, const v1::CollectSpansRequest& request);

class TraceCalls {
 public:
  static constexpr size_t kMaxCalls = 4;       // under way
  static constexpr size_t kMaxSpans = 20'000;  // of a call
  static constexpr int64_t kMaxSeconds = 60;

  // Whether a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // Begins to collect what a checked request wants, on any thread; null: too
  // many do.
  using Begin = std::function<std::unique_ptr<SpanCollection>(
      const v1::CollectSpansRequest&)>;

  // `clock` outlives it.
  TraceCalls(Admit admit, Begin begin, const Clock& clock);
  // REQUIRES: the server has shut down.
  ~TraceCalls();

  // kResourceExhausted: its thread cannot be had.
  const absl::Status& started() const;
  grpc::Service* service();
  // Answers all calls, and those to come, by kUnavailable.
  void Stop();

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::rpc
