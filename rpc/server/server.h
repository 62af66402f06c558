// SPDX-License-Identifier: Apache-2.0
//
// Server manages one gRPC server: start, drain, stop. Health is enabled.
// Reflection is not: it would describe the services to every caller.
//
// Acceptor, not gRPC, accepts connections: gRPC's own listener never accepts
// again once it has lacked a descriptor. If configured, a watchdog calls the
// server as a client would.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "rpc/access/gate.h"
#include "rpc/call/auth.h"
#include "rpc/connections/acceptor.h"
#include "rpc/server/watchdog.h"
#include "rpc/tls/server_tls.h"

namespace grpc {
class Server;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace leat::rpc {

struct ServerOptions {
  std::string address = "127.0.0.1:0";     // "host:port", port 0: any;
                                           // or as Listener::Bind
  int max_receive_bytes = 1 << 20;         // of one message
  int max_concurrent_streams = 10'000;     // of one connection
  int64_t memory_quota_bytes = 1ll << 30;  // of gRPC's own buffers
  Duration keepalive_interval = std::chrono::seconds(20);
  Duration keepalive_timeout = std::chrono::seconds(10);
  // For TLS and the HTTP/2 preface; then the connection is closed.
  Duration handshake_timeout = std::chrono::seconds(20);
  // 0: three quarters of the process's descriptors, at most 20,000.
  int max_connections = 0;
  int max_connections_per_address = 0;  // 0: half of max_connections
  // Receives new connections; nullptr: connections are not limited before
  // callers are identified. Outlives the server.
  UnauthenticatedConnections* unauthenticated = nullptr;
  Gate gate;  // for external calls, not for this process's own; empty: none
  Duration watchdog_interval{0};  // 0: no watchdog
  // WatchdogOptions::on_alive.
  std::function<void()> on_alive;
  // Empty: ends the process with kDeafExitCode.
  std::function<void()> on_deaf;
};

class Server {
 public:
  // `services` outlive the server. Errors: of Listener::Bind, CheckListener and
  // ServerTls::Create; kResourceExhausted: no thread is available.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, const Security& security,
      const std::vector<grpc::Service*>& services);
  // Stops at once: calls are cancelled; returns when all handlers have
  // finished.
  ~Server();

  // Returns the address that clients use, with the bound port.
  const std::string& address() const { return address_; }
  // Sets health to NOT_SERVING; everything else continues.
  void StopServing();
  // Sets health to NOT_SERVING; refuses new connections; waits for calls to
  // end, then cancels the rest.
  void Drain(Duration timeout);
  // Sets the certificates of new connections. Errors: as ServerTls::Replace;
  // kFailedPrecondition: TLS is off.
  absl::Status ReplaceTls(const Security& security);
  Acceptor::Counters connections() const { return acceptor_->counters(); }
  // Returns OK, or how many consecutive calls of its own process it did not
  // answer.
  absl::Status answers() const;

 private:
  Server() = default;
  // Starts accepting, and the watchdog, for a running gRPC server.
  absl::Status Open(Listener listener, const ServerOptions& options);

  std::string address_;
  std::unique_ptr<ServerTls> tls_;  // null: plaintext
  // Receivers of descriptors: of external connections, and of the watchdog's
  // own, which do not use TLS.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> others_, own_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace leat::rpc
