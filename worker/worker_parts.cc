// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_parts.h"

#include <memory>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/process/machine.h"
#include "worker/cache/crowd.h"
#include "worker/image/jpeg/decode/form_maker.h"
#include "worker/image/jpeg/forms/codec.h"

namespace leat::worker {
namespace {

// The most bytes of a message: a client-supplied sample and a request around
// it.
constexpr int kMaxReceiveBytes = kMaxSuppliedBytes + (4 << 20);

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryServer>> StartSharing(
    const Config& config, DeviceImporter* importer) {
  if (config.transport == "grpc") return nullptr;
  if (config.transport == "cuda" && importer == nullptr)
    return FailedPrecondition(
        "LEAT_TRANSPORT cuda: this worker has no GPU whose memory it can be "
        "shared");
  absl::StatusOr<std::unique_ptr<SharedMemoryServer>> server =
      SharedMemoryServer::Start(config.sharing, importer);
  if (server.ok()) return server;
  if (config.transport != "auto")
    return Annotate(server.status(), "LEAT_TRANSPORT " + config.transport);
  LOG_WARN("worker.sharing error=\"{}\"", Message(server.status()));
  return nullptr;
}

absl::StatusOr<std::unique_ptr<DiskForms>> StartDiskForms(
    const Config& config, const Storage& storage) {
  std::shared_ptr<DiskCache> disk = storage.disk();
  if (disk == nullptr || (!config.form_kinds().any() &&
                          config.disk_cache_of == DiskCacheOf::kRemote))
    return nullptr;
  return DiskForms::Start(
      std::move(disk), {.kinds = config.form_kinds(),
                        .codec = JpegFormCodec(),
                        .of = config.disk_cache_of,
                        .local_records = config.storage.local_copies.empty()});
}

IdleFormsOptions IdleFormsConfig(const Config& config) {
  return {
      .makers =
          config.form_kinds().any() ? static_cast<size_t>(config.threads) : 0,
      .make_maker = JpegFormMakers(config.image),
      .crowded = [crowd = std::make_shared<const Crowd>()](
                     size_t ours) { return crowd->IsThere(ours); },
      .times_throttled = [counters = rpc::QuotaCounters(
                              {})] { return rpc::TimesThrottled(counters); }};
}

JobTableOptions JobTableConfig(const Config& config) {
  JobTableOptions options;
  options.max_jobs = config.max_jobs;
  options.load_timeout = std::chrono::milliseconds(config.job_timeout_ms);
  options.source_limits = config.source;
  options.index_cache.max_bytes = config.index_bytes;
  return options;
}

rpc::ServerOptions RowsServerOptions(
    const Config& config, rpc::UnauthenticatedConnections* unauthenticated) {
  return {
      .address = config.listen,
      .max_receive_bytes = kMaxReceiveBytes,
      .max_connections = config.daemon.max_connections,
      .max_connections_per_address = config.daemon.max_connections_per_address,
      .unauthenticated = unauthenticated,
      .watchdog_interval =
          std::chrono::milliseconds(config.daemon.watchdog_interval_ms)};
}

}  // namespace leat::worker
