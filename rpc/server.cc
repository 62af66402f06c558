// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "core/log.h"
#include "core/status.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace leat::rpc {
namespace {

int Milliseconds(Duration duration) {
  return static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

// Why gRPC could not listen: it says only that it could not. Tries to bind the
// same address and reports errno's text.
std::string WhyNotBound(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (address.rfind("unix", 0) == 0 || colon == std::string::npos)
    return "the socket's name is taken or not valid";
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  address.c_str() + colon + 1, &hints, &found);
  if (failure != 0) return gai_strerror(failure);
  std::string reason = "not valid";
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd, 1) != 0)
    reason = strerror(errno);
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return reason;
}

std::string WithPort(const std::string& address, int port) {
  if (address.rfind("unix", 0) == 0) return address;
  return fmt::format("{}:{}", address.substr(0, address.rfind(':')), port);
}

}  // namespace

Server::Server(std::string address) : address_(std::move(address)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options, const Security& security,
    const std::vector<grpc::Service*>& services) {
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::ServerCredentials> credentials,
                   ServerCredentials(security, options.address));
  static std::once_flag plugins;
  std::call_once(plugins, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });

  grpc::ResourceQuota quota("leat");
  quota.Resize(static_cast<size_t>(options.memory_quota_bytes));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, credentials, &port);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(options.keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(options.keepalive_timeout));
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  for (grpc::Service* service : services) builder.RegisterService(service);

  std::unique_ptr<grpc::Server> started = builder.BuildAndStart();
  const bool has_port = options.address.rfind("unix", 0) != 0;
  if (started == nullptr || (has_port && port == 0))
    return Unavailable("cannot listen on {}: {}", options.address,
                       WhyNotBound(options.address));
  std::unique_ptr<Server> server(new Server(WithPort(options.address, port)));
  server->server_ = std::move(started);
  return server;
}

Server::~Server() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void Server::Drain(Duration timeout) {
  if (auto* health = server_->GetHealthCheckService())
    health->SetServingStatus(false);
  server_->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
}

void BlockStopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int WaitForStop(int lifeline_fd) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  pollfd waits[2] = {{signals, POLLIN, 0}, {lifeline_fd, POLLIN, 0}};
  int result = -1;
  while (result < 0) {
    if (poll(waits, lifeline_fd >= 0 ? 2 : 1, -1) < 0) continue;
    if (signalfd_siginfo info; (waits[0].revents & POLLIN) &&
                               read(signals, &info, sizeof info) == sizeof info)
      result = static_cast<int>(info.ssi_signo);
    // Nothing is ever written to the lifeline: readable means that its other
    // end is closed.
    else if (lifeline_fd >= 0 && waits[1].revents != 0)
      result = 0;
  }
  close(signals);
  return result;
}

}  // namespace leat::rpc
