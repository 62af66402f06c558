// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/memory_socket.h"

#include <fcntl.h>
#include <google/protobuf/message_lite.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/status.h"

namespace leat::rpc {
namespace {

// Maximum number of descriptors in a packet; the kernel's own limit is 253.
constexpr size_t kMaxDescriptors = 253;
constexpr int kWantedSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string ErrorText(int error) {
  return std::strerror(error);  // NOLINT: glibc's is thread-safe enough
}

// Waits for `events`, or for an error, which the next call on the socket
// returns.
absl::Status WaitFor(int socket, short events, std::string_view what,
                     MonotonicTime deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - Clock::Real().Now());
    if (left.count() <= 0)
      return DeadlineExceeded("memory socket: {}: out of time", what);
    pollfd poller{.fd = socket, .events = events, .revents = 0};
    const int timeout = static_cast<int>(std::min<int64_t>(
        left.count(),
        std::chrono::milliseconds(std::chrono::hours(1)).count()));
    const int ready = poll(&poller, 1, timeout);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR)
      return Internal("memory socket: poll: {}", ErrorText(errno));
  }
}

absl::StatusOr<socklen_t> MakeAddress(std::string_view name,
                                      sockaddr_un* address) {
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof address->sun_path - 1)
    return InvalidArgument("memory socket: a name of {} bytes: want 1 to {}",
                           name.size(), sizeof address->sun_path - 1);
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                name.size());
}

absl::StatusOr<Fd> MakeSocket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.open())
    return ResourceExhausted("memory socket: {}", ErrorText(errno));
  return fd;
}

// Takes ownership of all descriptors received with a message.
std::vector<Fd> TakeDescriptors(msghdr* header) {
  std::vector<Fd> fds;
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
      continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

std::string RandomBytes(size_t bytes) {
  std::string random(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = getrandom(random.data() + done, bytes - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
    // Only an interrupted call may fail here: a secret must never be guessable.
    else if (errno != EINTR)
      std::abort();
  }
  return random;
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differ = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differ == 0;
}

absl::StatusOr<Fd> ListenMemorySocket(std::string_view name, int backlog) {
  sockaddr_un address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAddress(name, &address));
  ASSIGN_OR_RETURN(Fd fd, MakeSocket());
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (bind(fd.get(), to, length) != 0) {
    if (errno == EADDRINUSE)
      return AlreadyExists("memory socket {}: in use", name);
    return Unavailable("memory socket {}: bind: {}", name, ErrorText(errno));
  }
  if (listen(fd.get(), backlog) != 0)
    return Unavailable("memory socket {}: listen: {}", name, ErrorText(errno));
  return fd;
}

absl::Status CheckPeer(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return PermissionDenied("memory socket: the peer is not known: {}",
                            ErrorText(errno));
  const uid_t self = geteuid();
  if (peer.uid == self || peer.uid == 0 || self == 0) return absl::OkStatus();
  return PermissionDenied("memory socket: the peer is user {}: want {}",
                          peer.uid, self);
}

absl::StatusOr<Fd> AcceptMemorySocket(int listener) {
  for (;;) {
    Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.open()) {
      RETURN_IF_ERROR(CheckPeer(fd.get()));
      return fd;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return NotFound("memory socket: no connection waits");
    return ResourceExhausted("memory socket: accept: {}", ErrorText(errno));
  }
}

namespace {

// Sets the time for which the socket may block. Returns false if the deadline
// has passed.
bool MayBlockUntil(int socket, MonotonicTime deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
      deadline - Clock::Real().Now());
  if (left.count() <= 0) return false;
  const timeval time{.tv_sec = left.count() / 1'000'000,
                     .tv_usec = left.count() % 1'000'000};
  return setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0 &&
         fcntl(socket, F_SETFL, 0) == 0;
}

}  // namespace

absl::StatusOr<Fd> ConnectMemorySocket(std::string_view name,
                                       MonotonicTime deadline) {
  sockaddr_un address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAddress(name, &address));
  ASSIGN_OR_RETURN(Fd fd, MakeSocket());
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  // A Unix socket connects at once, or returns EAGAIN while the backlog is
  // full. That cannot be polled for, but a blocking socket sleeps until there
  // is room, or its send timeout expires.
  while (connect(fd.get(), to, length) != 0) {
    if (errno != EINTR && errno != EAGAIN)
      return Unavailable("memory socket {}: {}", name, ErrorText(errno));
    if (!MayBlockUntil(fd.get(), deadline))
      return DeadlineExceeded(
          "memory socket {}: its owner accepts no connection in time", name);
  }
  if (fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0)
    return Internal("memory socket {}: fcntl: {}", name, ErrorText(errno));
  RETURN_IF_ERROR(CheckPeer(fd.get()));
  return fd;
}

absl::Status SendPacket(int socket,
                        const google::protobuf::MessageLite& message, int fd,
                        MonotonicTime deadline) {
  std::string packet(1, kPacketTag);
  if (!message.AppendToString(&packet) || packet.size() > kMaxPacketBytes)
    return InvalidArgument("memory socket: a packet of {} bytes: want up to {}",
                           packet.size(), kMaxPacketBytes);
  iovec data{.iov_base = packet.data(), .iov_len = packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
      return Unavailable("memory socket: the peer has gone");
    if (errno != EAGAIN)
      return Internal("memory socket: send: {}", ErrorText(errno));
    RETURN_IF_ERROR(WaitFor(socket, POLLOUT, "sending", deadline));
  }
  return absl::OkStatus();
}

absl::Status ReceivePacket(int socket, google::protobuf::MessageLite* message,
                           Fd* fd, MonotonicTime deadline) {
  fd->Close();
  std::vector<char> packet(kMaxPacketBytes);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)>
      control{};
  iovec data{.iov_base = packet.data(), .iov_len = packet.size()};
  msghdr header{};
  ssize_t got = -1;
  for (;;) {
    header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (got >= 0) break;
    if (errno == EINTR) continue;
    if (errno == ECONNRESET || errno == ENOTCONN)
      return Unavailable("memory socket: the peer has gone");
    if (errno != EAGAIN)
      return Internal("memory socket: receive: {}", ErrorText(errno));
    RETURN_IF_ERROR(WaitFor(socket, POLLIN, "receiving", deadline));
  }
  std::vector<Fd> fds = TakeDescriptors(&header);
  if (got == 0 && fds.empty())
    return Unavailable("memory socket: the peer has closed");
  if ((header.msg_flags & MSG_CTRUNC) != 0)
    return InvalidArgument("memory socket: descriptors were cut off");
  if (fds.size() > 1)
    return InvalidArgument("memory socket: {} descriptors in a packet: want 1",
                           fds.size());
  if ((header.msg_flags & MSG_TRUNC) != 0)
    return InvalidArgument("memory socket: a packet of more than {} bytes",
                           kMaxPacketBytes);
  if (packet[0] != kPacketTag ||
      !message->ParseFromArray(packet.data() + 1, static_cast<int>(got) - 1))
    return InvalidArgument("memory socket: a packet of {} bytes: not a message",
                           got);
  if (!fds.empty()) *fd = std::move(fds.front());
  return absl::OkStatus();
}

void ShutDown(const Fd& socket) {
  if (socket.open()) shutdown(socket.get(), SHUT_RDWR);
}

absl::StatusOr<Fd> CreateHostMemory(std::string_view name, size_t bytes) {
  Fd fd(
      memfd_create(std::string(name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.open()) return Unavailable("memfd_create: {}", ErrorText(errno));
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return Unavailable("memfd of {} bytes: {}", bytes, ErrorText(errno));
  if (fcntl(fd.get(), F_ADD_SEALS, kWantedSeals) != 0)
    return Unavailable("memfd: sealing: {}", ErrorText(errno));
  return fd;
}

absl::Status CheckHostMemory(int fd, uint64_t bytes) {
  // Only memfds have seals; other files of tmpfs cannot be sealed.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return InvalidArgument("shared descriptor: not a memfd");
  if ((seals & kWantedSeals) != kWantedSeals)
    return InvalidArgument(
        "shared memfd: not sealed against shrinking and growing");
  struct stat info {};
  if (fstat(fd, &info) != 0)
    return InvalidArgument("shared memfd: {}", ErrorText(errno));
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) != bytes)
    return InvalidArgument("shared memfd: {} bytes: want {}", info.st_size,
                           bytes);
  return absl::OkStatus();
}

}  // namespace leat::rpc
