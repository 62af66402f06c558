// SPDX-License-Identifier: Apache-2.0
//
// Config: all that leat-coordinator can be told, mirrored by its flags.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/auth.h"
#include "server/coordinator.h"

namespace leat::server {

struct Config {
  // Behaviour.
  std::string listen = "127.0.0.1:7411";
  std::string state_dir;  // empty: in memory
  bool accept_data_loss = false;
  rpc::Security security;
  CoordinatorConfig coordinator;
  // Calls may end by themselves for so long after a stop signal.
  Duration drain_timeout = std::chrono::seconds(2);

  // Of one message: a piece of an index and its frame, or a header.
  int max_receive_bytes = 8 << 20;

  absl::Status Validate() const;
  // One line of key=value, without secrets.
  std::string ToString() const;
};

// The token in a file, without the line's end. kNotFound, kPermissionDenied,
// kInvalidArgument: empty, or larger than 4 KiB.
absl::StatusOr<std::string> ReadToken(const std::string& path);
// A PEM file's text.
absl::StatusOr<std::string> ReadPem(const std::string& path);

}  // namespace leat::server
