// SPDX-License-Identifier: Apache-2.0
#include "client/client_tracing.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "client/machine.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"

namespace leat::client {
namespace {

struct SharedTracing {
  Mutex mu;
  std::weak_ptr<ClientTracing> tracing ABSL_GUARDED_BY(mu);
  bool refused ABSL_GUARDED_BY(mu) = false;  // and logged
};

}  // namespace

std::shared_ptr<ClientTracing> ClientTracing::Shared() {
  static SharedTracing& shared = *new SharedTracing;
  absl::StatusOr<rpc::OtlpSettings> settings = rpc::OtlpFromEnvironment(
      [](const char* name) -> const char* { return std::getenv(name); });
  if (settings.ok() && settings->endpoint.empty()) return nullptr;
  MutexLock lock(&shared.mu);
  if (shared.refused) return nullptr;
  if (std::shared_ptr<ClientTracing> tracing = shared.tracing.lock())
    return tracing;
  absl::Status status = settings.status();
  std::shared_ptr<ClientTracing> tracing(new ClientTracing);
  if (status.ok()) {
    rpc::OtlpExporter::Config config{.settings = *std::move(settings)};
    if (config.settings.service_name.empty())
      config.settings.service_name = "leat-consumer";
    config.resource["service.instance.id"] =
        fmt::format("{}/{}", HostName(), getpid());
    config.resource["host.name"] = HostName();
    auto exporter =
        rpc::OtlpExporter::Start(std::move(config), &tracing->tracer_);
    status = exporter.status();
    if (exporter.ok()) tracing->exporter_ = *std::move(exporter);
  }
  if (!status.ok()) {
    shared.refused = true;
    LOG_WARN("tracing.off error=\"{}\"", Message(status));
    return nullptr;
  }
  shared.tracing = tracing;
  return tracing;
}

}  // namespace leat::client
