// SPDX-License-Identifier: Apache-2.0
//
// Server: one gRPC server's life: start, drain, stop. Health and reflection are
// on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "rpc/auth.h"

namespace grpc {
class Server;
}

namespace leat::rpc {

struct ServerOptions {
  std::string address = "127.0.0.1:0";     // "host:port", port 0: any;
                                           // "unix:path"; "unix-abstract:name"
  int max_receive_bytes = 1 << 20;         // of one message
  int max_concurrent_streams = 10'000;     // of one connection
  int64_t memory_quota_bytes = 1ll << 30;  // of gRPC's own buffers
  Duration keepalive_interval = std::chrono::seconds(20);
  Duration keepalive_timeout = std::chrono::seconds(10);
};

class Server {
 public:
  // `services` outlive the server. kUnavailable: cannot listen (names the
  // address and the reason: in use, not ours, ...).
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, const Security& security,
      const std::vector<grpc::Service*>& services);
  // Hard stop: calls are cancelled; returns when all handlers have finished.
  ~Server();

  // The address that clients use: the bound port is filled in.
  const std::string& address() const { return address_; }
  // Health turns NOT_SERVING; new connections are refused; waits for calls to
  // end, then cancels the rest.
  void Drain(Duration timeout);

 private:
  explicit Server(std::string address);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Blocks SIGTERM and SIGINT in the calling thread and all that it starts later.
// Call first in main.
void BlockStopSignals();
// Waits for SIGTERM or SIGINT; or, with lifeline_fd ≥ 0, for that descriptor to
// be closed by its other end. Returns what ended the wait: the signal's number,
// or 0 for the lifeline.
int WaitForStop(int lifeline_fd);

}  // namespace leat::rpc
