// SPDX-License-Identifier: Apache-2.0
//
// A worker's metrics for Prometheus: the statistics of its heartbeats, with the
// histogram that those summarize. Labels are bounded: caches, GPUs, and the
// datasets that a heartbeat names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "leat/v1/types.pb.h"
#include "rpc/http/daemon_metrics.h"
#include "rpc/http/metric_page.h"
#include "rpc/tracing/otlp_exporter.h"
#include "worker/compute/histogram.h"

namespace leat::worker {

class WholeDecodes;

struct MetricSources {
  rpc::DaemonSources daemon;
  v1::WorkerStats stats;
  Histogram::Snapshot latency;  // of rows, from request to last byte sent
  uint64_t threads = 0;         // that decode
  uint64_t open_data_files = 0;
  bool in_session = false;
  rpc::OtlpCounters spans;
  const WholeDecodes* whole_decodes = nullptr;  // nullptr: none
};

// Returns the metrics in Prometheus' text format.
std::string MetricsOf(const MetricSources& sources);

std::vector<rpc::ReportedMessage> ReportedMessages();

}  // namespace leat::worker
