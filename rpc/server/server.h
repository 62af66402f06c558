// SPDX-License-Identifier: Apache-2.0
//
// Server: one gRPC server's life: start, drain, stop. Health is on. Reflection
// is not: it would tell everybody who connects what there is.
//
// Connections are accepted here (Acceptor), not by gRPC: where its own listener
// once lacks a descriptor, it never accepts again. A watchdog asks the server
// as a client would, where there is to be one.
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
  // For TLS and the first words of HTTP/2; then the connection is closed.
  Duration handshake_timeout = std::chrono::seconds(20);
  // 0: three quarters of the process's descriptors, at most 20,000.
  int max_connections = 0;
  int max_connections_per_address = 0;  // 0: half of max_connections
  // Is told of connections; null: nothing is bound before callers are known.
  // Outlives the server.
  UnauthenticatedConnections* unauthenticated = nullptr;
  Gate gate;  // of callers' calls, not of this process's own; empty: none
  Duration watchdog_interval{0};  // 0: no watchdog
  // WatchdogOptions::on_alive.
  std::function<void()> on_alive;
  // Empty: ends the process with kDeafExitCode.
  std::function<void()> on_deaf;
};

class Server {
 public:
  // `services` outlive the server. Errors: of Listener::Bind, CheckListener and
  // ServerTls::Create; kResourceExhausted: no thread can be had.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, const Security& security,
      const std::vector<grpc::Service*>& services);
  // Hard stop: calls are cancelled; returns when all handlers have finished.
  ~Server();

  // The address that clients use: the bound port is filled in.
  const std::string& address() const { return address_; }
  // Health turns NOT_SERVING; all else goes on.
  void StopServing();
  // Health turns NOT_SERVING; new connections are refused; waits for calls to
  // end, then cancels the rest.
  void Drain(Duration timeout);
  // Certificates for connections from now on. Errors: as ServerTls::Replace;
  // kFailedPrecondition: TLS is off.
  absl::Status ReplaceTls(const Security& security);
  Acceptor::Counters connections() const { return acceptor_->counters(); }
  // OK, or how often in a row it has not answered its own process.
  absl::Status answers() const;

 private:
  Server() = default;
  // Accepts, and watches, for a gRPC server that runs.
  absl::Status Open(Listener listener, const ServerOptions& options);

  std::string address_;
  std::unique_ptr<ServerTls> tls_;  // null: plaintext
  // Where descriptors go: of others, and of the watchdog, which is not asked
  // for TLS.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> others_, own_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace leat::rpc
