// SPDX-License-Identifier: Apache-2.0
//
// ClientTracing: where this process' consumers put the spans of traced steps.
// The standard variables of OpenTelemetry name a collector
// (rpc::OtlpFromEnvironment); without an endpoint there is none. Apart from it
// the coordinator may ask (SpanReporter).
//
// One for all connections of the process, made with the first and gone with the
// last one, which sends what is left.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "core/observe/tracing.h"
#include "rpc/tracing/otlp_exporter.h"

namespace leat::client {

class ClientTracing {
 public:
  // What is wrong with the variables is logged once.
  static std::shared_ptr<ClientTracing> Shared();

  Tracer* tracer() { return &tracer_; }

 private:
  // A process may have an iterator for each of its GPUs, and some callers may
  // look at each.
  static constexpr size_t kMaxListeners = 128;

  ClientTracing() = default;
  // kInvalidArgument: a variable. Other errors: as rpc::OtlpExporter::Start.
  absl::Status StartExport();

  Tracer tracer_{Clock::Real(), kMaxListeners};
  std::unique_ptr<rpc::OtlpExporter> exporter_;  // null: nowhere
};

}  // namespace leat::client
