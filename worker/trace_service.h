// SPDX-License-Identifier: Apache-2.0
//
// TraceCalls: leat.v1.TraceService. A call listens to the tracer until its time
// is over; one thread answers those whose time is over.
//
//   CollectSpans ─► Tracer::Listen ─► the list of calls ─► thread ─► Finish
//
// Stop answers all calls, so that the server can shut down.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/tracing.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace leat::worker {

class TraceCalls {
 public:
  static constexpr size_t kMaxCalls = 4;       // under way
  static constexpr size_t kMaxSpans = 20'000;  // of a call
  static constexpr int64_t kMaxSeconds = 60;

  // Whether a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // `tracer` and `clock` outlive it.
  TraceCalls(Admit admit, Tracer* tracer, const Clock& clock);
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

}  // namespace leat::worker
