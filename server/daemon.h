// SPDX-License-Identifier: Apache-2.0
//
// Daemon: a whole coordinator: store, decisions, threads, gRPC. main and the
// tests start it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "server/config.h"

namespace leat::server {

// The exit code of a coordinator that cannot keep its state. After a failed
// fsync the content of the disk is unknown, so the process ends, and the next
// one reads what is there (sysexits.h: EX_IOERR).
inline constexpr int kStateFailedExitCode = 74;

class Daemon {
 public:
  // Calls `on_failed` (which may be null) once, on some thread, when the state
  // can no longer be written. Errors: of Config::Validate, SqliteStore::Open,
  // rpc::Server::Start and rpc::StatusServer::Start; kFailedPrecondition: the
  // state has access tokens, and the daemon has none of its own.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, const Clock* clock,
      std::function<void(const absl::Status&)> on_failed = nullptr);
  // Stops at once, without Drain.
  ~Daemon();

  const std::string& address() const;
  // Returns the address of the status pages; empty: there are none.
  std::string http_address() const;
  Coordinator& coordinator();
  // Errors: as rpc::Server::ReplaceTls.
  absl::Status Replace(const rpc::Security& security);
  // Lets running calls end, for up to drain_timeout, then ends them.
  void Drain();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::server
