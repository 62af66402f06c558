// SPDX-License-Identifier: Apache-2.0
//
// ClientTracing: where this process's consumers send the spans of traced steps.
// The standard variables of OpenTelemetry name a collector
// (rpc::OtlpFromEnvironment); without an endpoint there is none. Independently,
// the coordinator may request spans (SpanReporter).
//
// All connections of the process share one. It is created with the first
// connection, and destroyed with the last one, which sends the remaining spans.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "core/observe/tracing.h"
#include "rpc/tracing/otlp_exporter.h"

namespace leat::client {

class ClientTracing {
 public:
  // Errors in the variables are logged once.
  static std::shared_ptr<ClientTracing> Shared();

  Tracer* tracer() { return &tracer_; }

 private:
  // A process may have an iterator per GPU, and several callers may trace each.
  static constexpr size_t kMaxListeners = 128;

  ClientTracing() = default;
  // kInvalidArgument: a variable. Other errors: as rpc::OtlpExporter::Start.
  absl::Status StartExport();

  Tracer tracer_{Clock::Real(), kMaxListeners};
  std::unique_ptr<rpc::OtlpExporter> exporter_;  // null: no collector
};

}  // namespace leat::client
