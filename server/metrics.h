// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator shows to Prometheus: members, jobs, findings and its
// state, of the same messages that the CLI shows. Labels are bounded: names of
// workers stand on the workers' own pages, and at most kMaxJobSeries jobs have
// series of their own.
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

// Jobs that are in use, by name, that have series.
inline constexpr size_t kMaxJobSeries = 200;
// Pools without bounds that have series; workers may say any name.
inline constexpr size_t kMaxPoolSeries = 100;

// What the page is made of, apart from the coordinator.
struct MetricSources {
  rpc::DaemonSources daemon;
  TimedStore::Times writes;
  absl::Status state_writable;
};

// In Prometheus' text format.
std::string MetricsOf(const Coordinator& coordinator,
                      const MetricSources& sources, Now now);

std::vector<rpc::ReportedMessage> ReportedMessages();

}  // namespace leat::server
