// SPDX-License-Identifier: Apache-2.0
//
// One thread waits for all connections with epoll, edge-triggered: each time
// that a connection has received bytes, it asks the kernel for their total
// (TCP_INFO). gRPC reads the bytes meanwhile; this class does not.
#include "rpc/connections/unauthenticated_connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "fmt/format.h"
#include "rpc/call/grpc_log.h"

namespace leat::rpc {
namespace {

constexpr uint64_t kWakeId = 0;  // unauthenticated begin at 1
constexpr auto kEndedLogInterval = std::chrono::seconds(10);
constexpr auto kHandshakeLogInterval = std::chrono::seconds(10);
constexpr size_t kMostTold = 64;
constexpr size_t kMostGone = 64;  // examined at a time
// gRPC frees memory some time after a connection has ended, and later on a busy
// machine.
constexpr auto kTrimAfter = std::chrono::seconds(1);
constexpr auto kTrimAgain = std::chrono::seconds(5);
constexpr int kTrims = 4;
constexpr uint64_t kTrimFrom = 100;  // connections that ended by themselves

size_t MostUnauthenticated() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 16;
  return static_cast<size_t>(std::clamp<rlim_t>(limit.rlim_cur / 8, 16, 1024));
}

// Returns address and port; IPv4 inside IPv6 becomes IPv4. Empty: not such an
// address.
std::string KeyOf(const sockaddr_storage& peer) {
  const auto bytes = [](const void* data, size_t size) {
    return std::string(static_cast<const char*>(data), size);
  };
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return bytes(&v4.sin_addr, 4) + bytes(&v4.sin_port, 2);
  }
  if (peer.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  const std::string address = bytes(&v6.sin6_addr, 16);
  return (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? address.substr(12) : address) +
         bytes(&v6.sin6_port, 2);
}

// Returns the address and port as people write them.
std::string PeerText(const std::string& key) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const size_t size = key.size() - 2;
  inet_ntop(size == 4 ? AF_INET : AF_INET6, key.data(), text.data(),
            text.size());
  in_port_t port = 0;
  memcpy(&port, key.data() + size, sizeof port);
  return fmt::format("{}{}{}:{}", size == 4 ? "" : "[", text.data(),
                     size == 4 ? "" : "]", ntohs(port));
}

// Returns the key of "ipv4:127.0.0.1:80" or "ipv6:%5B::1%5D:80".
std::string KeyOfPeer(std::string_view peer) {
  const bool v4 = peer.starts_with("ipv4:");
  const size_t colon = peer.rfind(':');
  if ((!v4 && !peer.starts_with("ipv6:")) || colon < 5) return {};
  std::string host(peer.substr(5, colon - 5));
  for (const std::string_view mark : {"%5B", "%5D", "[", "]"})
    if (const size_t at = host.find(mark); at != host.npos)
      host.erase(at, mark.size());
  // Without the interface of a link-local address.
  host = host.substr(0, host.find('%'));
  const std::string_view digits = peer.substr(colon + 1);
  uint16_t port = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), port).ec !=
      std::errc())
    return {};
  sockaddr_storage storage{};
  storage.ss_family = v4 ? AF_INET : AF_INET6;
  void* address = nullptr;
  if (v4) {
    auto& name = reinterpret_cast<sockaddr_in&>(storage);
    name.sin_port = htons(port);
    address = &name.sin_addr;
  } else {
    auto& name = reinterpret_cast<sockaddr_in6&>(storage);
    name.sin6_port = htons(port);
    address = &name.sin6_addr;
  }
  return inet_pton(storage.ss_family, host.c_str(), address) == 1
             ? KeyOf(storage)
             : std::string();
}

uint64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

// Resets the connection. Bytes that were received and not read are dropped, so
// gRPC makes no calls from them, and the caller is not left waiting for room.
void Reset(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (connect(fd, &none, sizeof none) != 0) shutdown(fd, SHUT_RDWR);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnauthenticatedConnections>>
UnauthenticatedConnections::Start(UnauthenticatedOptions options) {
  if (options.max == 0) options.max = MostUnauthenticated();
  std::unique_ptr<UnauthenticatedConnections> unauthenticated(
      new UnauthenticatedConnections(options));
  unauthenticated->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  unauthenticated->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (unauthenticated->epoll_ < 0 || unauthenticated->wake_ < 0 ||
      epoll_ctl(unauthenticated->epoll_, EPOLL_CTL_ADD, unauthenticated->wake_,
                &event) != 0)
    return ResourceExhausted("no descriptor to watch new connections by: {}",
                             strerror(errno));
  RETURN_IF_ERROR(StartThread(
      "leat-unauth", [n = unauthenticated.get()] { n->Loop(); },
      &unauthenticated->thread_));
  return unauthenticated;
}

UnauthenticatedConnections::~UnauthenticatedConnections() {
  if (thread_.joinable()) {
    {
      MutexLock lock(&mu_);
      stopping_ = true;
    }
    eventfd_write(wake_, 1);
    thread_.join();
  }
  {
    MutexLock lock(&mu_);
    while (!connections_.empty()) Take(connections_.begin(), Why::kGone);
  }
  CloseTaken();
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
}

bool UnauthenticatedConnections::Add(int fd, const sockaddr_storage& peer) {
  std::string key = KeyOf(peer);
  if (key.empty()) return true;
  const MonotonicTime now = Clock::Real().Now();
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  bool added = false, wake = false;
  {
    MutexLock lock(&mu_);
    // The same name again means that its previous connection has ended.
    if (const auto old = by_key_.find(key); old != by_key_.end())
      Take(connections_.find(old->second), Why::kGone);
    if (connections_.size() >= options_.max &&
        now - connections_.begin()->second.came >= options_.least_time)
      Take(connections_.begin(), Why::kCrowdedOut);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    event.data.u64 = ++last_id_;
    if (connections_.size() < options_.max &&
        epoll_ctl(epoll_, EPOLL_CTL_ADD, own, &event) == 0) {
      added = true;
      wake = connections_.empty();  // the thread waits for no deadline
      by_key_[key] = last_id_;
      connections_[last_id_] = {own, std::move(key), now};
    }
  }
  CloseTaken();
  if (!added) close(own);
  if (wake) eventfd_write(wake_, 1);
  return added;
}

void UnauthenticatedConnections::Prove(std::string_view peer) {
  const std::string key = KeyOfPeer(peer);
  if (key.empty()) return;
  {
    MutexLock lock(&mu_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    ++counters_.proven;
    Take(connections_.find(found->second), Why::kProven);
  }
  CloseTaken();
}

UnauthenticatedConnections::Counters UnauthenticatedConnections::counters()
    const {
  MutexLock lock(&mu_);
  return counters_;
}

void UnauthenticatedConnections::Loop() {
  std::array<epoll_event, 64> events;
  while (true) {
    int wait_ms = 0;
    bool trim = false;
    {
      MutexLock lock(&mu_);
      if (stopping_) return;
      wait_ms = MillisecondsToWait();
    }
    const int ready = epoll_wait(epoll_, events.data(),
                                 static_cast<int>(events.size()), wait_ms);
    {
      MutexLock lock(&mu_);
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        eventfd_t ignored;
        if (event.data.u64 == kWakeId)
          eventfd_read(wake_, &ignored);
        else
          Look(event.data.u64, event.events);
      }
      const MonotonicTime now = Clock::Real().Now();
      while (!connections_.empty() &&
             now - connections_.begin()->second.came >= options_.time)
        Take(connections_.begin(), Why::kLate);
      trim = now >= trim_at_;
      if (trim) {
        trim_at_ = --trims_left_ > 0 ? now + kTrimAgain : MonotonicTime::max();
        unknown_ = 0;
      }
    }
    CloseTaken();
    // The allocator would keep it for calls that never arrive.
    if (trim) malloc_trim(0);
  }
}

int UnauthenticatedConnections::MillisecondsToWait() const {
  MonotonicTime until = trim_at_;
  if (!connections_.empty())
    until = std::min(until, connections_.begin()->second.came + options_.time);
  if (until == MonotonicTime::max()) return -1;
  const Duration left = until - Clock::Real().Now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

// If an id is missing, its connection was identified meanwhile.
void UnauthenticatedConnections::Look(uint64_t id, uint32_t events) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0)
    Take(it, Why::kGone);
  else if (BytesReceived(it->second.fd) > options_.bytes)
    Take(it, Why::kLarge);
}

void UnauthenticatedConnections::Take(
    std::map<uint64_t, Connection>::iterator it, Why why) {
  const int fd = it->second.fd;
  std::string key = std::move(it->second.key);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  by_key_.erase(key);
  connections_.erase(it);
  if (why == Why::kGone && gone_.size() < kMostGone)
    gone_.push_back(std::move(key));
  if (why == Why::kLate) ++counters_.late;
  if (why == Why::kLarge) ++counters_.large;
  if (why == Why::kCrowdedOut) ++counters_.crowded_out;
  const bool reset = why != Why::kGone && why != Why::kProven;
  if (why != Why::kProven) ++unknown_;
  if (reset || unknown_ >= kTrimFrom) {
    trim_at_ = std::min(trim_at_, Clock::Real().Now() + kTrimAfter);
    trims_left_ = kTrims;
  }
  taken_.emplace_back(reset, fd);
}

void UnauthenticatedConnections::CloseTaken() {
  std::vector<std::pair<bool, int>> taken;
  std::vector<std::string> gone;
  Counters ended;
  uint64_t since_last = 0;
  {
    MutexLock lock(&mu_);
    taken.swap(taken_);
    gone.swap(gone_);
    ended = counters_;
    const uint64_t all = ended.late + ended.large + ended.crowded_out;
    const MonotonicTime now = Clock::Real().Now();
    if (all > logged_ && now >= next_log_) {
      since_last = all - std::exchange(logged_, all);
      next_log_ = now + kEndedLogInterval;
    }
  }
  for (const auto& [end, fd] : taken) {
    if (end) Reset(fd);
    close(fd);
  }
  LogHandshakes(gone);
  if (since_last > 0)
    LOG_WARN(
        "listener.unknown_callers ended={} late={} large={} crowded_out={} "
        "note=\"connections that showed no access token in time\"",
        since_last, ended.late, ended.large, ended.crowded_out);
}

void UnauthenticatedConnections::LogHandshakes(
    const std::vector<std::string>& gone) {
  for (const std::string& key : gone) {
    const MonotonicTime now = Clock::Real().Now();
    const std::optional<std::string> failed = TakeFailedHandshake(now);
    if (!failed) return;
    const std::string reason = HandshakeText(*failed);
    uint64_t held_back = 0;
    {
      MutexLock lock(&mu_);
      std::erase_if(told_, [&](const auto& each) {
        return now - each.second >= kHandshakeLogInterval;
      });
      // The same host for the same reason, on any port.
      const std::string what = key.substr(0, key.size() - 2) + reason;
      if (told_.contains(what) || told_.size() >= kMostTold) {
        ++handshakes_held_back_;
        continue;
      }
      told_.emplace(what, now);
      held_back = std::exchange(handshakes_held_back_, 0);
    }
    LOG_WARN("listener.handshake_failed peer={} reason=\"{}\" held_back={}",
             PeerText(key), reason, held_back);
  }
}

}  // namespace leat::rpc
