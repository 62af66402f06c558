// SPDX-License-Identifier: Apache-2.0
//
// Config holds all settings of leat-coordinator; its flags mirror them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/call/auth.h"
#include "rpc/server/server.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

struct Config {
  // Behaviour.
  std::string listen = "127.0.0.1:7411";
  std::string http;       // HOST:PORT or PORT of the status pages; empty: none
  std::string state_dir;  // empty: in memory
  bool accept_data_loss = false;
  rpc::Security security;
  CoordinatorConfig coordinator;
  // How long running calls may take to end by themselves after a stop signal.
  Duration drain_timeout = std::chrono::seconds(2);
  // The largest message is a piece of an index with its frame, or a header. The
  // address is `listen`.
  rpc::ServerOptions server = {.max_receive_bytes = 8 << 20,
                               .watchdog_interval = std::chrono::seconds(10)};

  rpc::UnauthenticatedOptions unauthenticated;

  absl::Status Validate() const;
  // Returns one line of key=value, without secrets.
  std::string ToString() const;
};

}  // namespace leat::server
