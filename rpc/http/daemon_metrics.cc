// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/daemon_metrics.h"

#include <chrono>
#include <string>
#include <utility>

#include "rpc/call/auth.h"

namespace leat::rpc {
namespace {

constexpr Metric kBuild = {"leat_build_info", MetricKind::kGauge,
                           "1, with the release and the daemon."};
constexpr Metric kAnswers = {
    "leat_listener_up", MetricKind::kGauge,
    "1: the daemon answers calls of its own process; 0: it does not."};
constexpr Metric kAccepted = {"leat_connections_accepted_total",
                              MetricKind::kCounter,
                              "Connections that were accepted for calls."};
constexpr Metric kRefused = {
    "leat_connections_refused_total", MetricKind::kCounter,
    "Connections that were closed at once, by the bound that they exceeded."};
constexpr Metric kExpiry = {"leat_cert_expiry_timestamp_seconds",
                            MetricKind::kGauge,
                            "When the daemon's certificate expires, since "
                            "1970; no series without TLS."};
constexpr Metric kBegin = {"leat_cert_begin_timestamp_seconds",
                           MetricKind::kGauge,
                           "From when that certificate is valid, since 1970; "
                           "no series without TLS."};

}  // namespace

void AddDaemon(const DaemonSources& sources, MetricPage::Labels labels,
               MetricPage* page) {
  labels.emplace_back("version", std::string(kLeatVersion));
  page->Add(kBuild, labels, 1);
  page->Add(kStartMetric, {}, SecondsOf(sources.started_at));
  page->Add(kAnswers, {}, sources.answers.ok() ? 1 : 0);
  const Acceptor::Counters& connections = sources.connections;
  page->Add(kAccepted, {}, static_cast<double>(connections.accepted));
  page->Add(kRefused, {{"bound", "all"}},
            static_cast<double>(connections.refused_all));
  page->Add(kRefused, {{"bound", "address"}},
            static_cast<double>(connections.refused_address));
  page->Declare(kExpiry);
  page->Declare(kBegin);
  if (!sources.certificate) return;
  page->Add(kExpiry, {}, SecondsOf(sources.certificate->end));
  if (sources.certificate->begin)
    page->Add(kBegin, {}, SecondsOf(*sources.certificate->begin));
}

double SecondsOf(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace leat::rpc
