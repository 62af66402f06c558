// SPDX-License-Identifier: Apache-2.0
#include "rpc/connections/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "core/status.h"

namespace leat::rpc {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr std::string_view kAbstractScheme = "unix-abstract:";
constexpr std::string_view kInheritedScheme = "fd:";
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

absl::Status CannotListen(const std::string& address, std::string_view reason) {
  return Unavailable("cannot listen on {}: {}", address, reason);
}

// Returns the socket's name in the kernel's form; an abstract one begins with a
// zero byte.
absl::StatusOr<std::string> UnixName(const std::string& address) {
  std::string name;
  if (address.starts_with(kAbstractScheme)) {
    name = '\0' + address.substr(kAbstractScheme.size());
  } else {
    name = address.substr(kUnixScheme.size());
    if (name.starts_with("///")) name.erase(0, 2);
  }
  constexpr size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;
  if (name.size() < (name.starts_with('\0') ? 2 : 1) || name.size() > kMaxName)
    return CannotListen(
        address,
        fmt::format("a socket's name has 1 to {} bytes", kMaxName - 1));
  return name;
}

// Returns whether no process listens on a socket's file: a killed process has
// left it.
bool IsLeftOver(const sockaddr_un& name, socklen_t size) {
  struct stat found {};
  if (lstat(name.sun_path, &found) != 0 || !S_ISSOCK(found.st_mode))
    return false;
  const int fd = socket(AF_UNIX, kSocketFlags, 0);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&name), size) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

int PortOf(const sockaddr_storage& name) {
  return ntohs(name.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

void SetPort(sockaddr_storage* name, int port) {
  const in_port_t value = htons(static_cast<uint16_t>(port));
  if (name->ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(name)->sin6_port = value;
  else
    reinterpret_cast<sockaddr_in*>(name)->sin_port = value;
}

// Returns a listening socket at `name`, or -1 with errno. Accepted connections
// inherit the options.
int ListenTcp(const sockaddr_storage& name, socklen_t size, bool one_family,
              Duration unanswered) {
  const int fd = socket(name.ss_family, kSocketFlags, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int milliseconds = static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(unanswered)
          .count());
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
             sizeof milliseconds);
  const int v6_only = one_family ? 1 : 0;
  if (name.ss_family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) == 0 &&
      listen(fd, SOMAXCONN) == 0)
    return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int BoundPort(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return PortOf(name);
}

}  // namespace

bool IsUnixAddress(std::string_view address) {
  return address.starts_with(kUnixScheme) ||
         address.starts_with(kAbstractScheme) ||
         address.starts_with(kInheritedScheme);
}

absl::StatusOr<Listener> Listener::Bind(const std::string& address,
                                        Duration unanswered) {
  Listener listener(address);
  RETURN_IF_ERROR(address.starts_with(kInheritedScheme) ? listener.Inherit()
                  : IsUnixAddress(address)              ? listener.BindUnix()
                                           : listener.BindTcp(unanswered));
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : address_(std::move(other.address_)),
      inherited_(other.inherited_),
      path_(std::exchange(other.path_, {})),
      sockets_(std::exchange(other.sockets_, {})) {}

absl::Status Listener::BindUnix() {
  ASSIGN_OR_RETURN(const std::string text, UnixName(address_));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, text.data(), text.size());
  const bool abstract = text.front() == '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                           text.size() + (abstract ? 0 : 1));
  const int fd = socket(AF_UNIX, kSocketFlags, 0);
  if (fd < 0) return CannotListen(address_, strerror(errno));
  sockets_.push_back(fd);
  const auto* const at = reinterpret_cast<const sockaddr*>(&name);
  int bound = bind(fd, at, size);
  if (bound != 0 && errno == EADDRINUSE && !abstract &&
      IsLeftOver(name, size) && unlink(name.sun_path) == 0)
    bound = bind(fd, at, size);
  if (bound != 0) return CannotListen(address_, strerror(errno));
  if (!abstract) path_ = text;
  if (listen(fd, SOMAXCONN) != 0)
    return CannotListen(address_, strerror(errno));
  return absl::OkStatus();
}

// The socket stays bound when this process ends: its starter has it, too.
absl::Status Listener::Inherit() {
  int fd = -1, listens = 0;
  sockaddr_un name{};
  socklen_t size = sizeof listens, length = sizeof name;
  const std::string_view number =
      std::string_view(address_).substr(kInheritedScheme.size());
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, fd);
  if (error != std::errc() || stop != end || fd < 0 ||
      getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      listens == 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0 ||
      name.sun_family != AF_UNIX ||
      length <= offsetof(sockaddr_un, sun_path) + 1)
    return CannotListen(
        address_, "want a Unix socket of a name, inherited, that listens");
  sockets_.push_back(fd);
  inherited_ = true;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
      fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
    return CannotListen(address_, strerror(errno));
  const std::string text(name.sun_path,
                         length - offsetof(sockaddr_un, sun_path));
  address_ = text.front() == '\0'
                 ? std::string(kAbstractScheme) + text.substr(1)
                 : std::string(kUnixScheme) + text.c_str();
  return absl::OkStatus();
}

absl::Status Listener::BindTcp(Duration unanswered) {
  const size_t colon = address_.rfind(':');
  if (colon == std::string::npos || colon + 1 == address_.size())
    return CannotListen(address_, "it has no port: want HOST:PORT");
  std::string host = address_.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  address_.c_str() + colon + 1, &hints, &found);
  if (failure != 0) return CannotListen(address_, gai_strerror(failure));
  // A single "[::]" accepts both families, as usual on Linux.
  const bool one_family = found->ai_next != nullptr;
  int port = 0, error = 0;
  bool taken = false;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    sockaddr_storage name{};
    memcpy(&name, each->ai_addr, each->ai_addrlen);
    const bool any_port = PortOf(name) == 0;
    if (any_port) SetPort(&name, port);
    const int fd = ListenTcp(name, each->ai_addrlen, one_family, unanswered);
    if (fd >= 0) {
      sockets_.push_back(fd);
      if (port == 0) port = BoundPort(fd);
      continue;
    }
    if (error == 0) error = errno;
    // A family that this machine lacks is ignored; another program at the
    // requested port is not.
    taken |= errno == EADDRINUSE && !any_port;
  }
  freeaddrinfo(found);
  if (taken) return CannotListen(address_, strerror(EADDRINUSE));
  if (sockets_.empty()) return CannotListen(address_, strerror(error));
  address_ = fmt::format("{}:{}", address_.substr(0, colon), port);
  return absl::OkStatus();
}

void Listener::Close() {
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

absl::Status CheckListenAddress(std::string_view address) {
  const auto want = [&](std::string_view why) {
    return InvalidArgument(
        "--listen \"{}\": {}: want HOST:PORT, as 127.0.0.1:7411 or 0.0.0.0:0, "
        "unix:PATH or unix-abstract:NAME",
        address, why);
  };
  if (address.empty()) return want("it is empty");
  if (address.starts_with("unix")) return absl::OkStatus();
  if (address.find("://") != address.npos) return want("it is a URL");
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return want("it has no port");
  const bool bracketed =
      address.starts_with('[') && colon > 0 && address[colon - 1] == ']';
  if (!bracketed && address.find(':') != colon)
    return want("an address of IPv6 stands in brackets");
  if (colon == 0) return want("it has no host");
  const std::string_view digits = address.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size())
    return want("its port is no number up to 65535");
  return absl::OkStatus();
}

}  // namespace leat::rpc
