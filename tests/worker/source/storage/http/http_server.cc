// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/source/storage/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "fmt/format.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxHead = 64 << 10;

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

HttpServer::Request ParseHead(std::string_view head) {
  HttpServer::Request out;
  size_t line_end = head.find("\r\n");
  const std::string_view first = head.substr(0, line_end);
  const size_t space = first.find(' ');
  out.method = std::string(first.substr(0, space));
  out.target =
      std::string(first.substr(space + 1, first.rfind(' ') - space - 1));
  while (line_end != std::string_view::npos && line_end + 2 < head.size()) {
    head.remove_prefix(line_end + 2);
    line_end = head.find("\r\n");
    const std::string_view line = head.substr(0, line_end);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    out.headers[name] = std::string(line.substr(colon + 2));
  }
  return out;
}

}  // namespace

std::string HttpServer::Request::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpServer::Request::Path() const {
  return PercentDecode(std::string_view(target).substr(0, target.find('?')));
}

std::string HttpServer::Request::Query(const std::string& name) const {
  const size_t question = target.find('?');
  if (question == std::string::npos) return "";
  std::string_view rest = std::string_view(target).substr(question + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (PercentDecode(pair.substr(0, equals)) == name) {
      return PercentDecode(pair.substr(std::min(equals + 1, pair.size())));
    }
  }
  return "";
}

std::optional<std::pair<uint64_t, uint64_t>> HttpServer::Request::Range()
    const {
  unsigned long long first = 0, last = 0;
  if (std::sscanf(Header("range").c_str(), "bytes=%llu-%llu", &first, &last) !=
      2) {
    return std::nullopt;
  }
  return std::pair<uint64_t, uint64_t>(first, last);
}

HttpServer::HttpServer(Handler handler)
    : handler_(std::move(handler)), stop_(eventfd(0, EFD_CLOEXEC)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 128) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    std::perror("HttpServer");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  Stop();
  close(stop_);
}

void HttpServer::Stop() {
  if (!acceptor_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof(one));
  acceptor_.join();
  close(listener_);
  std::list<std::thread> connections;
  {
    const MutexLock lock(&mu_);
    connections.swap(connections_);
  }
  for (std::thread& each : connections) each.join();
}

std::string HttpServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

bool HttpServer::Wait(int fd) const {
  pollfd both[] = {{fd, POLLIN, 0}, {stop_, POLLIN, 0}};
  return poll(both, 2, -1) > 0 && both[1].revents == 0;
}

void HttpServer::Accept() {
  while (Wait(listener_)) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const MutexLock lock(&mu_);
    connections_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpServer::Serve(int fd) {
  std::string buffer;
  while (ServeOne(fd, &buffer)) {
  }
  close(fd);
}

void HttpServer::WaitForEnd(int fd) const {
  char byte;
  while (Wait(fd) && recv(fd, &byte, 1, 0) > 0) {
  }
}

bool HttpServer::ServeOne(int fd, std::string* buffer) {
  size_t end;
  while ((end = buffer->find("\r\n\r\n")) == std::string::npos) {
    char some[4096];
    if (buffer->size() > kMaxHead || !Wait(fd)) return false;
    const ssize_t got = recv(fd, some, sizeof(some), 0);
    if (got <= 0) return false;
    buffer->append(some, static_cast<size_t>(got));
  }
  const Request request = ParseHead(std::string_view(*buffer).substr(0, end));
  buffer->erase(0, end + 4);
  const Reply reply = handler_(request);
  if (reply.raw.has_value()) {
    SendAll(fd, *reply.raw);
    while (!reply.drip.empty() && SendAll(fd, reply.drip))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (reply.stall) WaitForEnd(fd);
    return false;
  }
  std::string head = fmt::format("HTTP/1.1 {} X\r\n", reply.status);
  bool sized = false;
  for (const auto& [name, value] : reply.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
    sized = sized || name == "Content-Length";
  }
  if (!sized) head += fmt::format("Content-Length: {}\r\n", reply.body.size());
  head += "\r\n";
  if (request.method != "HEAD") {
    head += reply.body.substr(0, reply.cut_after.value_or(reply.body.size()));
  }
  if (!SendAll(fd, head)) return false;
  if (reply.stall) WaitForEnd(fd);
  return !reply.stall && !reply.cut_after.has_value();
}

}  // namespace leat::worker
