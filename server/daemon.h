// SPDX-License-Identifier: Apache-2.0
//
// Daemon: a whole coordinator: store, decisions, threads, gRPC. What main and
// the tests start.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "server/config.h"

namespace leat::server {

class Daemon {
 public:
  // Errors: of Config::Validate, SqliteStore::Open, rpc::Server::Start.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Config& config,
                                                       const Clock* clock);
  // Hard stop.
  ~Daemon();

  const std::string& address() const;
  Coordinator& coordinator();
  // Errors: as rpc::Server::ReplaceTls.
  absl::Status ReplaceTls(const rpc::Security& security);
  // Lets calls end, then ends them.
  void Drain();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::server
