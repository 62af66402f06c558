// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_tracing.h"

#include <utility>

#include "core/status.h"

namespace leat::worker {

WorkerTracing::WorkerTracing(rpc::TraceCalls::Admit admit)
    : calls_(
          std::move(admit),
          [this](const v1::CollectSpansRequest& request) {
            return rpc::CollectFrom(&tracer_, request);
          },
          Clock::Real()) {}

absl::Status WorkerTracing::StartExport(const Config& config,
                                        const std::string& name) {
  if (config.otlp.endpoint.empty()) return absl::OkStatus();
  rpc::OtlpExporter::Config exporter{.settings = config.otlp};
  if (exporter.settings.service_name.empty())
    exporter.settings.service_name = "leat-worker";
  exporter.resource["service.instance.id"] = name;
  ASSIGN_OR_RETURN(exporter_,
                   rpc::OtlpExporter::Start(std::move(exporter), &tracer_));
  return absl::OkStatus();
}

rpc::OtlpCounters WorkerTracing::exported() const {
  return exporter_ == nullptr ? rpc::OtlpCounters{} : exporter_->counters();
}

}  // namespace leat::worker
