// SPDX-License-Identifier: Apache-2.0
//
// Daemon: a whole coordinator: store, decisions, threads, gRPC. What main and
// the tests start.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "server/config.h"

namespace leat::server {

// The exit code of a coordinator that cannot keep its state: after a failed
// fsync nobody knows what is on the disk, so it ends, and the next one reads
// what is (sysexits.h: EX_IOERR).
inline constexpr int kStateFailedExitCode = 74;

class Daemon {
 public:
  // `on_failed` is told once, on some thread, that the state cannot be written
  // any more; may be null. Errors: of Config::Validate, SqliteStore::Open,
  // rpc::Server::Start and rpc::StatusServer::Start; kFailedPrecondition: the
  // state has access tokens, and the daemon has none of its own.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, const Clock* clock,
      std::function<void(const absl::Status&)> on_failed = nullptr);
  // Hard stop.
  ~Daemon();

  const std::string& address() const;
  // The address of the status pages; empty: there are none.
  std::string http_address() const;
  Coordinator& coordinator();
  // Errors: as rpc::Server::ReplaceTls.
  absl::Status Replace(const rpc::Security& security);
  // Lets calls end, then ends them.
  void Drain();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::server
