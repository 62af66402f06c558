// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/service_notifier.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "core/log.h"

namespace leat::rpc {
namespace {

// systemd's queue is short, and may be full if it is busy.
constexpr timeval kSendTimeout = {.tv_sec = 1, .tv_usec = 0};
constexpr size_t kMaxStatus = 512;

// Returns -1 if the text is not a number.
int64_t Number(const char* text) {
  if (text == nullptr) return -1;
  int64_t value = -1;
  const char* const end = text + strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end ? value : -1;
}

// A line break ends a field, so a status must be one line.
std::string OneLine(std::string_view text) {
  std::string line(text.substr(0, kMaxStatus));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// Connects a datagram socket to `name`; returns 0 or an errno.
int Connect(int fd, std::string name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((name[0] != '/' && name[0] != '@') || name.size() < 2 ||
      name.size() >= sizeof address.sun_path)
    return EINVAL;
  const auto length = static_cast<socklen_t>(
      offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '/' ? 1 : 0));
  if (name[0] == '@') name[0] = '\0';
  memcpy(address.sun_path, name.data(), name.size());
  if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout,
                 sizeof kSendTimeout) != 0)
    return errno;
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0
             ? 0
             : errno;
}

}  // namespace

NotifySettings NotifySettings::Read(
    const std::function<const char*(const char*)>& get, int pid) {
  NotifySettings settings;
  const char* const socket = get("NOTIFY_SOCKET");
  if (socket == nullptr || *socket == '\0') return settings;
  settings.socket = socket;
  const char* const whose = get("WATCHDOG_PID");
  const int64_t microseconds = Number(get("WATCHDOG_USEC"));
  if (microseconds > 0 && (whose == nullptr || Number(whose) == pid))
    settings.watchdog = std::chrono::microseconds(microseconds);
  return settings;
}

ServiceNotifier::ServiceNotifier(const NotifySettings& settings,
                                 const Clock* clock)
    : settings_(settings), clock_(clock) {
  if (settings_.socket.empty()) return;
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int error = socket_ < 0 ? errno : Connect(socket_, settings_.socket);
  if (error == 0) return;
  LOG_WARN("service_notifier.no_socket NOTIFY_SOCKET=\"{}\" error=\"{}\"",
           settings_.socket, strerror(error));
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

ServiceNotifier::~ServiceNotifier() {
  if (socket_ >= 0) close(socket_);
}

void ServiceNotifier::Ready(std::string_view status) {
  Send(fmt::format("READY=1\nSTATUS={}\n", OneLine(status)));
}

void ServiceNotifier::Status(std::string_view status) {
  Send(fmt::format("STATUS={}\n", OneLine(status)));
}

// systemd uses the time to distinguish several reloads.
void ServiceNotifier::Reloading() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      clock_->Now().time_since_epoch());
  Send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n", now.count()));
}

void ServiceNotifier::Stopping(std::string_view status) {
  Send(fmt::format("STOPPING=1\nSTATUS={}\n", OneLine(status)));
}

void ServiceNotifier::Alive() {
  if (settings_.watchdog > Duration::zero()) Send("WATCHDOG=1\n");
}

// An answer may come as late as the next question is due: two intervals may
// pass between two answers.
Duration ServiceNotifier::WatchdogInterval(Duration asked) const {
  if (settings_.watchdog <= Duration::zero()) return asked;
  const Duration most =
      std::max<Duration>(settings_.watchdog / 3, std::chrono::milliseconds(1));
  return asked > Duration::zero() ? std::min(asked, most) : most;
}

void ServiceNotifier::Send(const std::string& message) const {
  if (socket_ < 0) return;
  ssize_t sent;
  do {
    sent = send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0)
    LOG_WARN("service_notifier.not_sent field={} error=\"{}\"",
             message.substr(0, message.find('=')), strerror(errno));
}

}  // namespace leat::rpc
