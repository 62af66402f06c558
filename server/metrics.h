// SPDX-License-Identifier: Apache-2.0
//
// The metrics that a coordinator exports to Prometheus: members, jobs, findings
// and its state, from the same messages that the CLI shows. Labels are bounded:
// workers' names appear only on the workers' own pages, and at most
// kMaxJobSeries jobs have series of their own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/clock.h"
#include "rpc/http/daemon_metrics.h"
#include "rpc/http/metric_page.h"
#include "server/coordinator/coordinator.h"
#include "server/store/timed_store.h"

namespace leat::server {

// How many jobs in use, in order of name, have series.
inline constexpr size_t kMaxJobSeries = 200;
// How many pools without bounds have series; workers may send any name.
inline constexpr size_t kMaxPoolSeries = 100;

// Sources of the page besides the coordinator.
struct MetricSources {
  rpc::DaemonSources daemon;
  TimedStore::Times writes;
  absl::Status state_writable;
};

// Returns the page in Prometheus' text format.
std::string MetricsOf(const Coordinator& coordinator,
                      const MetricSources& sources, Now now);

std::vector<rpc::ReportedMessage> ReportedMessages();

}  // namespace leat::server
