// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "grpc/grpc_security.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "rpc/process/process.h"
#include "rpc/server/self_call.h"

namespace leat::rpc {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

constexpr int kMostConnections = 20'000, kFewestConnections = 16;

int Milliseconds(Duration duration) {
  return static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

// The remaining descriptors are for files and other uses of the process.
int ConnectionsOfThisProcess() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
  return static_cast<int>(
      std::clamp<rlim_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20) * 3 / 4,
                         kFewestConnections, kMostConnections));
}

AcceptorOptions Caps(const ServerOptions& options) {
  AcceptorOptions caps;
  caps.unauthenticated = options.unauthenticated;
  caps.max_connections = options.max_connections > 0
                             ? options.max_connections
                             : ConnectionsOfThisProcess();
  caps.max_connections_per_address =
      options.max_connections_per_address > 0
          ? options.max_connections_per_address
          : std::max(1, caps.max_connections / 2);
  return caps;
}

void SetArguments(const ServerOptions& options, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("leat");
  quota.Resize(static_cast<size_t>(options.memory_quota_bytes));
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              options.max_concurrent_streams);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              Milliseconds(options.keepalive_interval));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              Milliseconds(options.keepalive_timeout));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              Milliseconds(options.handshake_timeout));
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

[[noreturn]] void EndDeaf(const std::string& address) {
  LOG_ERROR(
      "watchdog.deaf address={} exit_code={} note=\"the process lives and "
      "answers no call; it ends, so that a supervisor starts it again\"",
      address, kDeafExitCode);
  Logger()->flush();
  std::_Exit(kDeafExitCode);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options, const Security& security,
    const std::vector<grpc::Service*>& services) {
  RETURN_IF_ERROR(CheckListener(security, options.address));
  static std::once_flag health;
  std::call_once(health, [] { grpc::EnableDefaultHealthCheckService(true); });
  std::unique_ptr<Server> server(new Server);
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (!security.cert_pem.empty()) {
    ASSIGN_OR_RETURN(server->tls_, ServerTls::Create(security));
    credentials = server->tls_->Credentials(options.gate);
  } else {
    credentials =
        WithGate(grpc_insecure_server_credentials_create(), options.gate);
  }
  ASSIGN_OR_RETURN(Listener listener,
                   Listener::Bind(options.address, options.keepalive_timeout));
  grpc::ServerBuilder builder;
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server->others_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, credentials);
  server->own_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  SetArguments(options, &builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr)
    return Unavailable("cannot listen on {}: gRPC does not start",
                       options.address);
  RETURN_IF_ERROR(server->Open(std::move(listener), options));
  return server;
}

absl::Status Server::Open(Listener listener, const ServerOptions& options) {
  address_ = listener.address();
  const auto hand = [this](int listening, int fd, bool own) {
    ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listening;
    connection.fd = fd;
    (own ? own_ : others_)->HandleNewConnection(&connection);
  };
  AcceptorOptions caps = Caps(options);
  caps.own_user_only = listener.inherited();
  ASSIGN_OR_RETURN(acceptor_,
                   Acceptor::Start(std::move(listener), std::move(caps), hand));
  if (options.watchdog_interval <= Duration::zero()) return absl::OkStatus();
  std::function<void()> on_deaf = options.on_deaf;
  if (!on_deaf) on_deaf = [address = address_] { EndDeaf(address); };
  ASSIGN_OR_RETURN(
      watchdog_,
      Watchdog::Start(
          {.interval = options.watchdog_interval, .on_alive = options.on_alive},
          [a = acceptor_.get()](MonotonicTime deadline) {
            return AskSelf(a, deadline);
          },
          std::move(on_deaf)));
  return absl::OkStatus();
}

// gRPC is stopped only when it receives no connections any more: it would leak
// their descriptors.
Server::~Server() {
  if (acceptor_ != nullptr) acceptor_->Stop();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  watchdog_.reset();
}

void Server::StopServing() {
  if (auto* health = server_->GetHealthCheckService())
    health->SetServingStatus(false);
}

void Server::Drain(Duration timeout) {
  StopServing();
  acceptor_->Stop();
  server_->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
}

absl::Status Server::answers() const {
  const int missed = watchdog_ == nullptr ? 0 : watchdog_->missed();
  if (missed == 0) return absl::OkStatus();
  return Unavailable("{} has not answered its own process {} times in a row",
                     address_, missed);
}

absl::Status Server::ReplaceTls(const Security& security) {
  if (tls_ == nullptr) return FailedPrecondition("TLS is off");
  return tls_->Replace(security);
}

}  // namespace leat::rpc
