// SPDX-License-Identifier: Apache-2.0
//
// WorkerTracing: shows what a worker does for single steps to callers of
// leat.v1.TraceService, and to a collector (rpc/tracing/otlp_exporter.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/observe/tracing.h"
#include "rpc/tracing/otlp_exporter.h"
#include "rpc/tracing/trace_calls.h"
#include "worker/config/config.h"

namespace leat::worker {

class WorkerTracing {
 public:
  explicit WorkerTracing(rpc::TraceCalls::Admit admit);

  // kResourceExhausted: a thread cannot be created.
  const absl::Status& started() const { return calls_.started(); }
  // Sends spans to the collector that `config` names, under the worker's name.
  // Errors: as rpc::OtlpExporter::Start.
  absl::Status StartExport(const Config& config, const std::string& name);

  const Tracer* tracer() const { return &tracer_; }
  grpc::Service* service() { return calls_.service(); }
  void Stop() { calls_.Stop(); }
  rpc::OtlpCounters exported() const;

 private:
  Tracer tracer_{Clock::Real()};
  rpc::TraceCalls calls_;
  std::unique_ptr<rpc::OtlpExporter> exporter_;  // nullptr: no export
};

}  // namespace leat::worker
