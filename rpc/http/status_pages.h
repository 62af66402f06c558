// SPDX-License-Identifier: Apache-2.0
//
// StatusPages has the pages that a daemon serves over HTTP.
//
//   /livez    200: the process answers
//   /readyz   200: it can do its work; 503 with the reason if it cannot
//   /metrics  its metrics in Prometheus' format; for roles that may call
//             AdminService/GetStatus
//
// The first two contain nothing about jobs or data, and answer every caller,
// including one without a required certificate: a kubelet has none. The daemon
// itself answers other paths. Thread-compatible: a server's handler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/http/message.h"

namespace leat::rpc {

// The rule that decides who may read the metrics (core/cluster/roles.h).
inline constexpr std::string_view kMetricsRule = "AdminService/GetStatus";

struct StatusSources {
  // Returns OK, or why the daemon cannot do its work.
  std::function<absl::Status()> ready;
  // Returns the metrics in Prometheus' text format.
  std::function<std::string()> metrics;
  // Checks that a caller with this token (empty: none) may read the metrics.
  std::function<absl::Status(std::string_view token)> admit;
  // Answers requests for other paths; nullptr: there are none.
  std::function<HttpResponse(const HttpRequest&)> others = nullptr;
};

// Returns the response for a caller that is not permitted or not identified.
HttpResponse Refusal(const absl::Status& why);

class StatusPages {
 public:
  // The metrics are computed at most this often, for any number of requests.
  static constexpr Duration kMetricsAge = std::chrono::seconds(1);

  // `clock` outlives it.
  StatusPages(StatusSources sources, const Clock* clock)
      : sources_(std::move(sources)), clock_(clock) {}

  HttpResponse Answer(const HttpRequest& request);

 private:
  HttpResponse Metrics(const HttpRequest& request);

  const StatusSources sources_;
  const Clock* const clock_;
  std::shared_ptr<const std::string> metrics_;  // nullptr: none yet
  MonotonicTime made_at_{};
};

}  // namespace leat::rpc
