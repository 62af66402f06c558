// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/self_call.h"

#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/generic/generic_stub.h"

namespace leat::rpc {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

int64_t MillisecondsUntil(MonotonicTime deadline) {
  return std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(
                                  deadline - Clock::Real().Now())
                                  .count());
}

gpr_timespec GrpcDeadline(MonotonicTime deadline) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_millis(MillisecondsUntil(deadline), GPR_TIMESPAN));
}

// Replaces the wildcard address of a server by the loopback address.
void MakeReachable(sockaddr_storage* name) {
  if (name->ss_family == AF_INET) {
    auto& address = reinterpret_cast<sockaddr_in*>(name)->sin_addr;
    if (address.s_addr == htonl(INADDR_ANY))
      address.s_addr = htonl(INADDR_LOOPBACK);
  } else if (name->ss_family == AF_INET6) {
    auto& address = reinterpret_cast<sockaddr_in6*>(name)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&address)) address = in6addr_loopback;
  }
}

// Returns a socket with a unique name, or -1.
int OwnSocket(const sockaddr_storage& server, socklen_t size,
              sockaddr_storage* name, socklen_t* name_size) {
  const int fd =
      socket(server.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  *name = server;
  // The kernel gives a Unix socket an abstract name.
  *name_size = server.ss_family == AF_UNIX ? sizeof(sa_family_t) : size;
  if (server.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(name)->sin_port = 0;
  if (server.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(name)->sin6_port = 0;
  if (bind(fd, reinterpret_cast<const sockaddr*>(name), *name_size) == 0) {
    *name_size = sizeof *name;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(name), name_size) == 0)
      return fd;
  }
  close(fd);
  return -1;
}

bool Connects(int fd, const sockaddr_storage& server, socklen_t size,
              MonotonicTime deadline) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&server), size) == 0)
    return true;
  if (errno != EINPROGRESS) return false;
  pollfd wait = {fd, POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, static_cast<int>(MillisecondsUntil(deadline)));
  } while (ready < 0 && errno == EINTR);
  int error = ETIMEDOUT;
  socklen_t error_size = sizeof error;
  return ready > 0 &&
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) == 0 &&
         error == 0;
}

// A call and its data, which gRPC uses until the call has ended.
struct HealthCall {
  explicit HealthCall(int fd)
      : stub(grpc::CreateInsecureChannelFromFd("self", fd)) {}
  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request{&nothing, 1};
  grpc::ByteBuffer response;
  grpc::Status status;
};

bool HealthAnswers(int fd, MonotonicTime deadline) {
  auto call = std::make_unique<HealthCall>(fd);
  call->context.set_deadline(GrpcDeadline(deadline));
  const auto reader = call->stub.PrepareUnaryCall(&call->context, kHealthCheck,
                                                  call->request, &call->queue);
  reader->StartCall();
  reader->Finish(&call->response, &call->status, call.get());
  void* tag = nullptr;
  bool ok = false;
  if (call->queue.AsyncNext(&tag, &ok,
                            GrpcDeadline(deadline + std::chrono::seconds(1))) ==
      grpc::CompletionQueue::GOT_EVENT)
    return call->status.ok();
  // gRPC does not end a call by itself: it may use this forever.
  call.release();
  return false;
}

}  // namespace

Deafness::Answer AskSelf(Acceptor* acceptor, MonotonicTime deadline) {
  using enum Deafness::Answer;
  sockaddr_storage server{}, name{};
  socklen_t size = 0, name_size = 0;
  if (acceptor->resting() || !acceptor->ListensAt(&server, &size))
    return kCouldNotAsk;
  MakeReachable(&server);
  const int fd = OwnSocket(server, size, &name, &name_size);
  if (fd < 0) return kCouldNotAsk;
  acceptor->Expect(name, name_size);
  bool answered = false;
  if (Connects(fd, server, size, deadline))
    answered = HealthAnswers(fd, deadline);
  else
    close(fd);
  acceptor->ExpectNothing();
  if (answered) return kCame;
  return acceptor->resting() ? kCouldNotAsk : kMissed;
}

}  // namespace leat::rpc
