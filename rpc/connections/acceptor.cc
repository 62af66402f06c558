// SPDX-License-Identifier: Apache-2.0
#include "rpc/connections/acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::rpc {
namespace {

// Maximum accepted from one socket before the others have their turn.
constexpr int kAtOnce = 64;
constexpr auto kRefusalLogInterval = std::chrono::seconds(10);

// Returns whether only one connection has failed before it was accepted, as
// accept(2) says; the next may succeed. Any other error is a shortage of
// descriptors or memory.
bool IsOfOneConnection(int error) {
  constexpr std::array kErrors = {
      EINTR,    ECONNABORTED, EPROTO, ENOPROTOOPT,  EOPNOTSUPP, EPERM,
      ENETDOWN, EHOSTDOWN,    ENONET, EHOSTUNREACH, ENETUNREACH};
  return std::ranges::find(kErrors, error) != kErrors.end();
}

// Returns 4 bytes for IPv4, also inside IPv6; 16 for IPv6; empty for a Unix
// socket.
std::string HostOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  if (peer.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  const std::string bytes(reinterpret_cast<const char*>(&v6), sizeof v6);
  return IN6_IS_ADDR_V4MAPPED(&v6) ? bytes.substr(12) : bytes;
}

std::string HostText(const std::string& host) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = host.size() == 4 ? AF_INET : AF_INET6;
  if (host.empty() ||
      inet_ntop(family, host.data(), text.data(), text.size()) == nullptr)
    return "unix";
  return text.data();
}

// Returns one text for a socket's name, independent of the padding of its
// struct.
std::string NameOf(const sockaddr_storage& name, socklen_t size) {
  if (name.ss_family == AF_UNIX) {
    const auto* const bytes = reinterpret_cast<const char*>(&name);
    return "u" + std::string(bytes, std::min<size_t>(size, sizeof name));
  }
  const in_port_t port =
      name.ss_family == AF_INET6
          ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
          : reinterpret_cast<const sockaddr_in&>(name).sin_port;
  return "t" + HostOf(name) +
         std::string(reinterpret_cast<const char*>(&port), sizeof port);
}

bool IsOwnUsers(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// Returns a number that identifies the socket behind a descriptor among all
// open ones; 0: none.
uint64_t Inode(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0 || !S_ISSOCK(found.st_mode)) return 0;
  return found.st_ino;
}

}  // namespace

Acceptor::Acceptor(Listener listener, AcceptorOptions options, Hand hand)
    : options_(std::move(options)),
      hand_(std::move(hand)),
      address_(listener.address()),
      listener_(std::move(listener)) {}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(
    Listener listener, AcceptorOptions options, Hand hand) {
  std::unique_ptr<Acceptor> acceptor(
      new Acceptor(std::move(listener), std::move(options), std::move(hand)));
  acceptor->stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (acceptor->stop_fd_ < 0)
    return ResourceExhausted("no descriptor for the listener of {}: {}",
                             acceptor->address_, strerror(errno));
  RETURN_IF_ERROR(StartThread(
      "leat-accept", [a = acceptor.get()] { a->Loop(); }, &acceptor->thread_));
  return acceptor;
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(stop_fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  MutexLock lock(&mu_);
  listener_.Close();
  if (stop_fd_ >= 0) close(std::exchange(stop_fd_, -1));
}

bool Acceptor::ListensAt(sockaddr_storage* name, socklen_t* size) const {
  MutexLock lock(&mu_);
  *size = sizeof *name;
  return !listener_.sockets().empty() &&
         getsockname(listener_.sockets().front(),
                     reinterpret_cast<sockaddr*>(name), size) == 0;
}

Acceptor::Counters Acceptor::counters() const {
  return {.accepted = accepted_,
          .refused_all = refused_all_,
          .refused_address = refused_address_,
          .rests = rests_,
          .own = own_};
}

void Acceptor::Expect(const sockaddr_storage& name, socklen_t size) {
  std::string text = NameOf(name, size);
  MutexLock lock(&mu_);
  expected_ = std::move(text);
}

void Acceptor::ExpectNothing() {
  MutexLock lock(&mu_);
  expected_.clear();
}

bool Acceptor::IsExpected(const sockaddr_storage& peer, socklen_t size) {
  const std::string name = NameOf(peer, size);
  MutexLock lock(&mu_);
  if (expected_ != name) return false;
  expected_.clear();
  return true;
}

void Acceptor::Loop() {
  std::vector<pollfd> waits = {{stop_fd_, POLLIN, 0}};
  for (const int socket : listener_.sockets())
    waits.push_back({socket, POLLIN, 0});
  while (true) {
    // While it pauses, the listeners are always ready, and are not polled.
    const bool rests = rest_ > Duration::zero();
    const auto rest_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(rest_).count();
    const int ready = poll(waits.data(), rests ? 1 : waits.size(),
                           rests ? static_cast<int>(rest_ms) : -1);
    if (ready < 0 && errno != EINTR) Rest(errno);
    if (ready > 0 && waits[0].revents != 0) return;
    if (ready < 0) continue;
    for (size_t i = 1; i < waits.size(); ++i)
      if (rests || waits[i].revents != 0) AcceptFrom(waits[i].fd);
  }
}

void Acceptor::AcceptFrom(int listener) {
  for (int i = 0; i < kAtOnce; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd = options_.accept(listener, reinterpret_cast<sockaddr*>(&peer),
                                   &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Recovered();
      Take(listener, fd, peer, size);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Recovered();
    if (!IsOfOneConnection(errno)) return Rest(errno);
  }
}

void Acceptor::Rest(int error) {
  ++rests_;
  rest_ = rest_ == Duration::zero()
              ? options_.shortest_rest
              : std::min(2 * rest_, options_.longest_rest);
  if (rests_in_a_row_++ > 0) return;
  resting_ = true;
  LOG_ERROR(
      "listener.rests address={} error=\"{}\" note=\"no connection is accepted "
      "until "
      "the process has it again\"",
      address_, strerror(error));
}

void Acceptor::Recovered() {
  if (rests_in_a_row_ == 0) return;
  LOG_INFO("listener.recovered address={} rests={}", address_, rests_in_a_row_);
  rests_in_a_row_ = 0;
  rest_ = Duration::zero();
  resting_ = false;
}

void Acceptor::Take(int listener, int fd, const sockaddr_storage& peer,
                    socklen_t size) {
  // Its last owner has closed it, otherwise the number would not be reused.
  if (const auto old = handed_.find(fd); old != handed_.end()) Drop(old);
  if (IsExpected(peer, size)) {
    ++own_;
    return hand_(listener, fd, /*own=*/true);
  }
  std::string host = HostOf(peer);
  if (options_.own_user_only && !IsOwnUsers(fd))
    return Refuse(fd, host, Bound::kUser);
  if (static_cast<int>(handed_.size()) >= options_.max_connections ||
      IsFull(host))
    DropEnded();
  if (static_cast<int>(handed_.size()) >= options_.max_connections)
    return Refuse(fd, host, Bound::kAll);
  if (IsFull(host)) return Refuse(fd, host, Bound::kAddress);
  if (options_.unauthenticated != nullptr &&
      !options_.unauthenticated->Add(fd, peer))
    return Refuse(fd, host, Bound::kUnauthenticated);
  ++accepted_;
  if (!host.empty()) ++by_host_[host];
  handed_[fd] = {.inode = Inode(fd), .host = std::move(host)};
  hand_(listener, fd, /*own=*/false);
}

bool Acceptor::IsFull(const std::string& host) {
  const auto found = by_host_.find(host);
  return found != by_host_.end() &&
         found->second >= options_.max_connections_per_address;
}

void Acceptor::Refuse(int fd, const std::string& host, Bound bound) {
  const bool all = bound != Bound::kAddress;
  ++(all ? refused_all_ : refused_address_);  // before the peer can notice
  close(fd);
  const MonotonicTime now = Clock::Real().Now();
  if (now < next_refusal_log_) return;
  next_refusal_log_ = now + kRefusalLogInterval;
  const uint64_t refused = refused_all_ + refused_address_;
  LOG_WARN(
      "listener.refused address={} peer={} connections={} cap={} since_last={} "
      "note=\"{}\"",
      address_, HostText(host), all ? handed_.size() : by_host_[host],
      all ? options_.max_connections : options_.max_connections_per_address,
      refused - std::exchange(refusals_logged_, refused),
      bound == Bound::kAll       ? "--max-connections"
      : bound == Bound::kAddress ? "--max-connections-per-address"
      : bound == Bound::kUser    ? "a process of another user"
                                 : "too many callers that are not known yet");
}

void Acceptor::DropEnded() {
  const MonotonicTime now = Clock::Real().Now();
  if (now < next_look_) return;
  next_look_ = now + options_.look_interval;
  for (auto it = handed_.begin(); it != handed_.end();) {
    const auto each = it++;
    if (Inode(each->first) != each->second.inode) Drop(each);
  }
}

void Acceptor::Drop(std::unordered_map<int, Handed>::iterator handed) {
  if (const auto host = by_host_.find(handed->second.host);
      host != by_host_.end() && --host->second == 0)
    by_host_.erase(host);
  handed_.erase(handed);
}

}  // namespace leat::rpc
