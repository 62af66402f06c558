// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <sys/statvfs.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <random>
#include <utility>

#include "core/counted.h"
#include "core/status.h"
#include "rpc/http/status_server.h"
#include "rpc/server/server.h"
#include "rpc/tls/server_tls.h"
#include "rpc/tracing/trace_calls.h"
#include "server/calls/admin_service.h"
#include "server/calls/service.h"
#include "server/coordinator/threads.h"
#include "server/metrics.h"
#include "server/page/web_page.h"
#include "server/pools/pool_service.h"
#include "server/pools/scaler_service.h"
#include "server/store/sqlite_store.h"
#include "server/store/state_directory.h"
#include "server/store/timed_store.h"

namespace leat::server {
namespace {

// Returns an instance number: never 0, and different at each start.
uint64_t RandomInstance() {
  std::random_device random;
  const uint64_t high = random();
  return (high << 32 | random()) | 1;
}

// A write that takes this long is waiting for a disk that does not answer.
constexpr Duration kWriteHangs = std::chrono::seconds(10);
// Room that the file system needs for SQLite's next pages.
constexpr uint64_t kLeastRoom = 1 << 20;

// Checks that a change could be written into the folder. kResourceExhausted,
// kPermissionDenied, kUnavailable.
absl::Status CheckRoom(const std::string& directory) {
  struct statvfs found {};
  if (statvfs(directory.c_str(), &found) != 0)
    return ErrnoStatus(errno, "cannot look at the state's folder");
  if ((found.f_flag & ST_RDONLY) != 0)
    return PermissionDenied("the state's file system is read-only");
  const uint64_t room = uint64_t{found.f_bavail} * found.f_frsize;
  if (room >= kLeastRoom) return absl::OkStatus();
  return ResourceExhausted(
      "the state's file system has {} bytes left: want at least {}", room,
      kLeastRoom);
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Config& config) {
  if (config.state_dir.empty())
    return std::unique_ptr<Store>(std::make_unique<MemoryStore>());
  SqliteOptions options;
  options.accept_data_loss = config.accept_data_loss;
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store,
                   SqliteStore::Open(config.state_dir, options));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace

// Members are in the order of construction. They are destroyed in reverse, so
// that none calls one that is gone.
struct Daemon::Parts {
  Parts(const Config& from, const Clock* c, std::unique_ptr<Store> opened,
        std::function<void(const absl::Status&)> on_failed)
      : config(from),
        clock(c),
        started_at(clock->WallNow()),
        store(std::move(opened), clock),
        driver(clock, std::move(on_failed)),
        coordinator(config.coordinator, &store, RandomInstance(),
                    [this] { driver.Wake(); }),
        access(config.security, clock),
        service(&coordinator, &access, clock),
        admin(&coordinator, &access, !config.security.token.empty(), clock),
        pools(&coordinator, &access, clock),
        scaler(&coordinator, &access),
        traces(
            [this](std::string_view method,
                   const grpc::ServerContextBase& call) {
              return access.Admit(method, call).status();
            },
            [this](const v1::CollectSpansRequest& request) {
              return service.spans()->Begin(request);
            },
            *clock),
        page(&coordinator, &admin.view(), service.sheets(), &access, clock) {
    coordinator.set_on_access([this](std::shared_ptr<const AccessTokens> told) {
      access.Replace(std::move(told));
    });
  }

  absl::Status StateWritable() const;
  absl::Status Ready() const;
  std::string Metrics() const;
  absl::Status StartPages();

  Config config;
  // Outlives the server.
  std::unique_ptr<rpc::UnauthenticatedConnections> unauthenticated;
  const Clock* const clock;
  const WallTime started_at;
  TimedStore store;
  Driver driver;
  Coordinator coordinator;
  rpc::Access access;
  CoordinatorService service;
  AdminService admin;
  PoolService pools;
  ScalerService scaler;
  rpc::TraceCalls traces;
  WebPage page;
  std::unique_ptr<rpc::Server> server;
  std::atomic<bool> draining = false;
  std::unique_ptr<rpc::StatusServer> pages;  // null: none; uses all members
                                             // above
};

// Asks for a hanging write first, because statvfs may hang with it.
absl::Status Daemon::Parts::StateWritable() const {
  RETURN_IF_ERROR(coordinator.StoreFailure());
  const std::optional<MonotonicTime> since = store.times().writing_since;
  if (since && clock->Now() >= *since + kWriteHangs)
    return Unavailable(
        "a change has been waiting for the state's disk for {} s",
        std::chrono::duration_cast<std::chrono::seconds>(clock->Now() - *since)
            .count());
  return config.state_dir.empty() ? absl::OkStatus()
                                  : CheckRoom(config.state_dir);
}

absl::Status Daemon::Parts::Ready() const {
  if (draining) return Unavailable("the coordinator is stopping");
  RETURN_IF_ERROR(StateWritable());
  return server->answers();
}

std::string Daemon::Parts::Metrics() const {
  MetricSources sources = {.daemon = {.started_at = started_at,
                                      .answers = server->answers(),
                                      .connections = server->connections(),
                                      .certificate = coordinator.certificate()},
                           .writes = store.times(),
                           .state_writable = StateWritable()};
  return MetricsOf(coordinator, sources, Now::Of(*clock));
}

absl::Status Daemon::Parts::StartPages() {
  if (config.http.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(pages, rpc::StatusServer::Start(
                              {.address = config.http,
                               .ready = [this] { return Ready(); },
                               .metrics = [this] { return Metrics(); },
                               .others =
                                   [this](const rpc::HttpRequest& request) {
                                     return page.Answer(request);
                                   }},
                              config.security, &access, clock));
  return absl::OkStatus();
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  parts_->pages.reset();
  parts_->coordinator.Shutdown();
  parts_->traces.Stop();
  parts_->server.reset();
  parts_->driver.Stop();
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, const Clock* clock,
    std::function<void(const absl::Status&)> on_failed) {
  RETURN_IF_ERROR(config.Validate());
  Config adjusted = config;
  adjusted.coordinator.insecure_listener = rpc::InsecureListener(
      config.security,
      {config.listen, rpc::HttpAddress(config.http).value_or("")});
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(config));
  std::unique_ptr<Daemon> daemon(new Daemon(std::make_unique<Parts>(
      adjusted, clock, std::move(store), std::move(on_failed))));
  Parts& parts = *daemon->parts_;
  RETURN_IF_ERROR(parts.coordinator.Recover());
  if (const size_t tokens = parts.coordinator.Access().size();
      tokens > 0 && config.security.token.empty())
    return FailedPrecondition(
        "the state has {}, and none would be asked for: want "
        "--access-token-file or LEAT_ACCESS_TOKEN",
        Counted(tokens, "access token"));
  RETURN_IF_ERROR(parts.driver.Start(&parts.coordinator));
  RETURN_IF_ERROR(parts.traces.started());
  rpc::ServerOptions options = config.server;
  options.address = config.listen;
  ASSIGN_OR_RETURN(
      parts.unauthenticated,
      rpc::UnauthenticatedConnections::Start(config.unauthenticated));
  options.unauthenticated = parts.unauthenticated.get();
  parts.access.set_on_known(
      [n = options.unauthenticated](std::string_view peer) { n->Prove(peer); });
  options.gate = [&access = parts.access](std::string_view path,
                                          std::string_view token) {
    return access.AdmitHeaders(path, token);
  };
  ASSIGN_OR_RETURN(
      parts.server,
      rpc::Server::Start(options, parts.config.security,
                         {&parts.service, &parts.admin, &parts.pools,
                          &parts.scaler, parts.traces.service()}));
  parts.coordinator.SetCertificate(rpc::FirstToExpire(config.security));
  parts.admin.view().set_address(parts.server->address());
  RETURN_IF_ERROR(parts.StartPages());
  return daemon;
}

const std::string& Daemon::address() const { return parts_->server->address(); }

std::string Daemon::http_address() const {
  return parts_->pages == nullptr ? "" : parts_->pages->address();
}

Coordinator& Daemon::coordinator() { return parts_->coordinator; }

absl::Status Daemon::Replace(const rpc::Security& security) {
  if (!security.cert_pem.empty()) {
    RETURN_IF_ERROR(parts_->server->ReplaceTls(security));
    parts_->coordinator.SetCertificate(rpc::FirstToExpire(security));
    if (parts_->pages != nullptr)
      RETURN_IF_ERROR(parts_->pages->ReplaceTls(security));
  }
  parts_->access.ReplaceOwn(security.token);
  return absl::OkStatus();
}

void Daemon::Drain() {
  parts_->draining = true;
  parts_->coordinator.Shutdown();
  parts_->traces.Stop();
  parts_->server->Drain(parts_->config.drain_timeout);
}

}  // namespace leat::server
