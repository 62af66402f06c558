// SPDX-License-Identifier: Apache-2.0
//
// StatusPages: what a daemon shows over HTTP.
//
//   /livez    200: the process answers
//   /readyz   200: it can do its work; 503 says why it cannot
//   /metrics  what it has counted, as Prometheus reads it; for roles that may
//             call AdminService/GetStatus
//
// The first two tell nothing of jobs or data, and answer everybody, also those
// who show no certificate where one is asked for: a kubelet has none. Other
// paths are the daemon's own.
// Thread-compatible: a server's handler.
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

// What a viewer may call, and so who may read the metrics
// (core/cluster/roles.h).
inline constexpr std::string_view kMetricsRule = "AdminService/GetStatus";

struct StatusSources {
  // OK, or why the daemon cannot do its work.
  std::function<absl::Status()> ready;
  // In Prometheus' text format.
  std::function<std::string()> metrics;
  // Whether a caller with this token (empty: none) may read the metrics.
  std::function<absl::Status(std::string_view token)> admit;
  // Answers what has another path; null: there is none.
  std::function<HttpResponse(const HttpRequest&)> others = nullptr;
};

// What a caller who may not, or of whom it is not known, is answered.
HttpResponse Refusal(const absl::Status& why);

class StatusPages {
 public:
  // The metrics are made at most so often, however many ask for them.
  static constexpr Duration kMetricsAge = std::chrono::seconds(1);

  // `clock` outlives it.
  StatusPages(StatusSources sources, const Clock* clock)
      : sources_(std::move(sources)), clock_(clock) {}

  HttpResponse Answer(const HttpRequest& request);

 private:
  HttpResponse Metrics(const HttpRequest& request);

  const StatusSources sources_;
  const Clock* const clock_;
  std::shared_ptr<const std::string> metrics_;  // null: none yet
  MonotonicTime made_at_{};
};

}  // namespace leat::rpc
