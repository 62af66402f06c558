// SPDX-License-Identifier: Apache-2.0
//
// What a worker shows to Prometheus: the statistics of its heartbeats, with the
// histogram of which those have a summary. Labels are bounded: caches, GPUs,
// and the datasets that a heartbeat names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "google/protobuf/descriptor.h"
#include "leat/v1/types.pb.h"
#include "rpc/connections/acceptor.h"
#include "rpc/http/metric_page.h"
#include "rpc/tracing/otlp_exporter.h"
#include "worker/compute/histogram.h"

namespace leat::worker {

class WholeDecodes;

struct MetricSources {
  WallTime started_at;
  v1::WorkerStats stats;
  Histogram::Snapshot latency;  // of rows, from asked to sent
  uint64_t threads = 0;         // that decode
  bool in_session = false;
  absl::Status answers;
  rpc::Acceptor::Counters connections;
  rpc::OtlpCounters spans;
  const WholeDecodes* whole_decodes = nullptr;  // null: none
  std::optional<WallTime> certificate_expiry;   // nullopt: no TLS
};

// In Prometheus' text format.
std::string MetricsOf(const MetricSources& sources);

// A message that is reported, and what becomes of each of its fields.
struct ReportedMessage {
  const google::protobuf::Descriptor* message;
  std::span<const rpc::FieldMetric> fields;
};
std::vector<ReportedMessage> ReportedMessages();

}  // namespace leat::worker
