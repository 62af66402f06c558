// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/tracing.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "client/coordinator/process_name.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/process/machine.h"

namespace leat::client {
namespace {

struct SharedTracing {
  Mutex mu;
  std::weak_ptr<ClientTracing> tracing ABSL_GUARDED_BY(mu);
  bool refused ABSL_GUARDED_BY(mu) = false;  // and that was logged
};

}  // namespace

std::shared_ptr<ClientTracing> ClientTracing::Shared() {
  static SharedTracing& shared = *new SharedTracing;
  MutexLock lock(&shared.mu);
  std::shared_ptr<ClientTracing> tracing = shared.tracing.lock();
  if (tracing == nullptr) {
    tracing.reset(new ClientTracing);
    shared.tracing = tracing;
  }
  if (shared.refused || tracing->exporter_ != nullptr) return tracing;
  if (const absl::Status status = tracing->StartExport(); !status.ok()) {
    shared.refused = true;
    LOG_WARN("tracing.off error=\"{}\"", Message(status));
  }
  return tracing;
}

absl::Status ClientTracing::StartExport() {
  ASSIGN_OR_RETURN(
      rpc::OtlpSettings settings,
      rpc::OtlpFromEnvironment(
          [](const char* name) -> const char* { return std::getenv(name); }));
  if (settings.endpoint.empty()) return absl::OkStatus();
  rpc::OtlpExporter::Config config{.settings = std::move(settings)};
  if (config.settings.service_name.empty())
    config.settings.service_name = "leat-consumer";
  config.resource["service.instance.id"] = OwnProcessName();
  config.resource["host.name"] = rpc::HostName();
  ASSIGN_OR_RETURN(exporter_,
                   rpc::OtlpExporter::Start(std::move(config), &tracer_));
  return absl::OkStatus();
}

}  // namespace leat::client
