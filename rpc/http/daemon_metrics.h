// SPDX-License-Identifier: Apache-2.0
//
// The metrics that every daemon has: version and build, start time, and the
// state of its listener and certificate.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/cluster/certificate_term.h"
#include "google/protobuf/descriptor.h"
#include "rpc/connections/acceptor.h"
#include "rpc/http/metric_page.h"

namespace leat::rpc {

inline constexpr Metric kStartMetric = {
    "leat_start_time_seconds", MetricKind::kGauge,
    "When the daemon was started, since 1970."};

struct DaemonSources {
  WallTime started_at;
  absl::Status answers;  // whether the server answers calls of its own process
  Acceptor::Counters connections;
  std::optional<CertificateTerm> certificate;  // nullopt: no TLS
};

// `labels` are those of leat_build_info, in addition to the version.
void AddDaemon(const DaemonSources& sources, MetricPage::Labels labels,
               MetricPage* page);

// Returns the seconds since 1970.
double SecondsOf(WallTime time);

// A reported message, and the metric of each of its fields.
struct ReportedMessage {
  const google::protobuf::Descriptor* message;
  std::span<const FieldMetric> fields;
};

// Marks a field that is not a metric.
constexpr FieldMetric NoMetric(std::string_view field, std::string_view why) {
  return {.field = field, .help = why};
}

}  // namespace leat::rpc
