// SPDX-License-Identifier: Apache-2.0
#include "client/private/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>

#include "absl/time/clock.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr int kQueue = 4096;  // connections waiting to be accepted

// Fixed, so that the handler after fork touches plain memory only.
constexpr int kMaxClosed = 64;
std::atomic<int> closed_in_child[kMaxClosed];  // descriptor + 1; 0: free

void CloseInChild() {
  for (std::atomic<int>& each : closed_in_child)
    if (const int fd = each.exchange(0); fd > 0) close(fd - 1);
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& name,
                                      socklen_t* size) {
  if (name.empty() || name.size() > kMaxLocalName)
    return InvalidArgument("socket name of {} bytes: want 1 to {}", name.size(),
                           kMaxLocalName);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  *size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<Fd> NewSocket(int type = SOCK_SEQPACKET) {
  // The descriptors are above those that a started program inherits by number.
  const Fd low(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  Fd fd(low.open()
            ? fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstInherited + kMaxInherited)
            : -1);
  if (!fd.open()) return Internal("socket: {}", strerror(errno));
  return fd;
}

absl::StatusOr<uid_t> PeerOf(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Internal("SO_PEERCRED: {}", strerror(errno));
  return peer.uid;
}

absl::StatusOr<Fd> Listen(const std::string& name, int type) {
  socklen_t size = 0;
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(name, &size));
  ASSIGN_OR_RETURN(Fd fd, NewSocket(type));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    if (errno == EADDRINUSE) return AlreadyExists("socket @{}: taken", name);
    return Internal("socket @{}: bind: {}", name, strerror(errno));
  }
  if (listen(fd.get(), kQueue) != 0)
    return Internal("socket @{}: listen: {}", name, strerror(errno));
  return fd;
}

// Takes over the descriptors of a message.
void TakePassed(msghdr* header, std::vector<Fd>* passed) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr;
       part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      Fd taken(fd);
      if (passed != nullptr) passed->push_back(std::move(taken));
    }
  }
}

}  // namespace

absl::StatusOr<Fd> ListenLocal(const std::string& name) {
  return Listen(name, SOCK_SEQPACKET);
}

absl::StatusOr<Fd> ListenStream(const std::string& name) {
  return Listen(name, SOCK_STREAM | SOCK_NONBLOCK);
}

absl::StatusOr<Fd> ConnectLocal(const std::string& name, absl::Time deadline) {
  socklen_t size = 0;
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(name, &size));
  ASSIGN_OR_RETURN(Fd fd, NewSocket());
  // connect waits while the listener's queue is full.
  const absl::Duration left =
      std::clamp(deadline - absl::Now(), absl::Milliseconds(1), absl::Hours(1));
  const timeval limit = absl::ToTimeval(left);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int error = 0;
  do {
    error = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                    size) == 0
                ? 0
                : errno;
  } while (error == EINTR && absl::Now() < deadline);
  if (error == EAGAIN || error == EINTR)
    return DeadlineExceeded("socket @{}: its queue stays full", name);
  if (error != 0) return NotFound("socket @{}: {}", name, strerror(error));
  ASSIGN_OR_RETURN(const uid_t owner, PeerOf(fd.get()));
  if (owner != geteuid())
    return PermissionDenied("socket @{}: is of user {}, want {}", name, owner,
                            geteuid());
  return fd;
}

absl::StatusOr<Fd> AcceptLocal(int listener) {
  while (true) {
    Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return Fd();
      return ResourceExhausted("accept: {}", strerror(errno));
    }
    const absl::StatusOr<uid_t> peer = PeerOf(fd.get());
    if (peer.ok() && *peer == geteuid()) return fd;
  }
}

bool SendLocal(int fd, std::string_view message,
               const std::vector<int>& passed) {
  iovec bytes = {const_cast<char*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxPassed * sizeof(int))] = {};
  if (!passed.empty()) {
    const size_t size = std::min(passed.size(), kMaxPassed) * sizeof(int);
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(part), passed.data(), size);
  }
  ssize_t n = 0;
  do {
    n = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(message.size());
}

absl::StatusOr<std::string> ReceiveLocal(int fd, absl::Time deadline,
                                         std::vector<Fd>* passed) {
  std::string message(kMaxLocalMessage, '\0');
  while (true) {
    iovec bytes = {message.data(), message.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(kMaxPassed * sizeof(int))];
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    const ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n > 0) {
      TakePassed(&header, passed);
      message.resize(static_cast<size_t>(n));
      return message;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
      return Unavailable("the other side has closed");
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return DeadlineExceeded("no message");
    pollfd wait = {fd, POLLIN, 0};
    poll(&wait, 1,
         static_cast<int>(std::clamp<int64_t>(
             absl::ToInt64Milliseconds(left) + 1, 0, 1'000'000)));
  }
}

// Lines of /proc/net/unix: "Num RefCount Protocol Flags Type St Inode Path".
// Flag 10000 means listening, and an abstract name begins with @.
std::vector<std::string> ListeningNames(const std::string& prefix,
                                        size_t most) {
  std::vector<std::string> names;
  std::ifstream table("/proc/net/unix");
  std::string line;
  while (names.size() < most && std::getline(table, line)) {
    std::istringstream words(line);
    std::string num, references, protocol, flags, type, state, inode, path;
    words >> num >> references >> protocol >> flags >> type >> state >> inode >>
        path;
    if (flags == "00010000" && path.starts_with("@" + prefix))
      names.push_back(path.substr(1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

ClosedInForkedChildren::ClosedInForkedChildren(int fd) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, CloseInChild); });
  for (int i = 0; i < kMaxClosed; ++i)
    if (int free = 0;
        closed_in_child[i].compare_exchange_strong(free, fd + 1)) {
      slot_ = i;
      return;
    }
}

ClosedInForkedChildren::ClosedInForkedChildren(
    ClosedInForkedChildren&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

ClosedInForkedChildren& ClosedInForkedChildren::operator=(
    ClosedInForkedChildren&& other) noexcept {
  if (this != &other) {
    Reset();
    slot_ = std::exchange(other.slot_, -1);
  }
  return *this;
}

void ClosedInForkedChildren::Reset() {
  if (slot_ >= 0) closed_in_child[slot_].store(0);
  slot_ = -1;
}

}  // namespace leat::client
