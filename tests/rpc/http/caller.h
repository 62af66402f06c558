// SPDX-License-Identifier: Apache-2.0
//
// HttpCaller calls an HttpServer over a bare socket.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "rpc/http/server.h"

namespace leat::rpc {

inline constexpr int kPatienceMs = 20'000;

inline uint16_t PortOf(const HttpServer& server) {
  const std::string& address = server.address();
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  std::from_chars(address.data() + address.rfind(':') + 1, end, port);
  return port;
}

// A caller's end of a connection, from `source`.
class HttpCaller {
 public:
  explicit HttpCaller(const HttpServer& server,
                      const char* source = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{}, other{};
    own.sin_family = other.sin_family = AF_INET;
    inet_pton(AF_INET, source, &own.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &other.sin_addr);
    other.sin_port = htons(PortOf(server));
    bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&other),
                         sizeof other) == 0;
  }
  HttpCaller(const HttpCaller&) = delete;
  ~HttpCaller() { close(fd_); }

  int fd() const { return fd_; }
  bool connected() const { return connected_; }
  // Returns false if the other end has closed it.
  bool Send(std::string_view text) {
    while (!text.empty()) {
      pollfd wait = {fd_, POLLOUT, 0};
      if (poll(&wait, 1, kPatienceMs) != 1) return false;
      const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Returns the received text up to `end`, or until the other end closes.
  std::string ReadUntil(std::string_view end) {
    std::string text;
    char bytes[4096];
    while (end.empty() || text.find(end) == std::string::npos) {
      pollfd wait = {fd_, POLLIN, 0};
      if (poll(&wait, 1, kPatienceMs) != 1) return text + "(late)";
      const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
      if (got <= 0) break;
      text.append(bytes, static_cast<size_t>(got));
    }
    return text;
  }
  // Returns whether the other end closes it without sending.
  bool IsClosed() { return ReadUntil("").empty(); }

 private:
  const int fd_;
  bool connected_ = false;
};

inline std::string Ask(const HttpServer& server, std::string_view request) {
  HttpCaller caller(server);
  caller.Send(request);
  return caller.ReadUntil("");
}

inline std::string Get(const HttpServer& server,
                       std::string_view path = "/page") {
  return Ask(server, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n"
                                 "Connection: close\r\n\r\n",
                                 path));
}

inline uint64_t ResidentKib() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word)
    if (word == "VmRSS:") {
      uint64_t kib = 0;
      file >> kib;
      return kib;
    }
  return 0;
}

}  // namespace leat::rpc
