// SPDX-License-Identifier: Apache-2.0
//
// ClientTracing: where this process' consumers put the spans of traced steps.
// The standard variables of OpenTelemetry say where they go
// (rpc::OtlpFromEnvironment); without an endpoint nothing is traced.
//
// One for all connections of the process, made with the first and gone with the
// last one, which sends what is left.
#pragma once

#include <memory>

#include "core/tracing.h"
#include "rpc/otlp_exporter.h"

namespace leat::client {

class ClientTracing {
 public:
  // null: nothing is traced; what is wrong with the variables is logged once.
  static std::shared_ptr<ClientTracing> Shared();

  const Tracer& tracer() const { return tracer_; }
  rpc::OtlpCounters counters() const { return exporter_->counters(); }

 private:
  ClientTracing() = default;

  Tracer tracer_{Clock::Real()};
  std::unique_ptr<rpc::OtlpExporter> exporter_;
};

}  // namespace leat::client
