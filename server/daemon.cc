// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <random>
#include <utility>

#include "core/status.h"
#include "rpc/server.h"
#include "server/admin_service.h"
#include "server/driver.h"
#include "server/service.h"
#include "server/sqlite_store.h"

namespace leat::server {
namespace {

// Never 0, and different at each start.
uint64_t RandomInstance() {
  std::random_device random;
  const uint64_t high = random();
  return (high << 32 | random()) | 1;
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

// In the order of construction; destroyed the other way round, so that nothing
// calls what is gone.
struct Daemon::Parts {
  Parts(const Config& from, const Clock* clock, std::unique_ptr<Store> opened,
        std::function<void(const absl::Status&)> on_failed)
      : config(from),
        store(std::move(opened)),
        driver(clock, std::move(on_failed)),
        coordinator(config.coordinator, store.get(), RandomInstance(),
                    [this] { driver.Wake(); }),
        access(config.security, clock),
        service(&coordinator, &access, clock),
        admin(&coordinator, &access, !config.security.token.empty(), clock) {
    coordinator.set_on_access([this](std::shared_ptr<const AccessTokens> told) {
      access.Replace(std::move(told));
    });
  }

  Config config;
  std::unique_ptr<Store> store;
  Driver driver;
  Coordinator coordinator;
  rpc::Access access;
  CoordinatorService service;
  AdminService admin;
  std::unique_ptr<rpc::Server> server;
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  parts_->coordinator.Shutdown();
  parts_->server.reset();
  parts_->driver.Stop();
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, const Clock* clock,
    std::function<void(const absl::Status&)> on_failed) {
  RETURN_IF_ERROR(config.Validate());
  Config adjusted = config;
  if (rpc::IsExposed(config.security, config.listen) &&
      config.security.insecure)
    adjusted.coordinator.insecure_listener = config.listen;
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(config));
  std::unique_ptr<Daemon> daemon(new Daemon(std::make_unique<Parts>(
      adjusted, clock, std::move(store), std::move(on_failed))));
  Parts& parts = *daemon->parts_;
  RETURN_IF_ERROR(parts.coordinator.Recover());
  if (const size_t tokens = parts.coordinator.Access().size();
      tokens > 0 && config.security.token.empty())
    return FailedPrecondition(
        "the state has {} access tokens, and none would be asked for: want "
        "--access-token-file or LEAT_ACCESS_TOKEN",
        tokens);
  RETURN_IF_ERROR(parts.driver.Start(&parts.coordinator));
  rpc::ServerOptions options = config.server;
  options.address = config.listen;
  ASSIGN_OR_RETURN(parts.server,
                   rpc::Server::Start(options, parts.config.security,
                                      {&parts.service, &parts.admin}));
  parts.admin.set_address(parts.server->address());
  return daemon;
}

const std::string& Daemon::address() const { return parts_->server->address(); }

Coordinator& Daemon::coordinator() { return parts_->coordinator; }

absl::Status Daemon::ReplaceTls(const rpc::Security& security) {
  return parts_->server->ReplaceTls(security);
}

void Daemon::Drain() {
  parts_->coordinator.Shutdown();
  parts_->server->Drain(parts_->config.drain_timeout);
}

}  // namespace leat::server
