// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: a small HTTP/1.1 server on 127.0.0.1 that does what a test sets,
// mistakes included. One thread per connection, all joined at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace leat::worker {

class HttpServer {
 public:
  struct Request {
    std::string method;
    std::string target;                          // path and query, as sent
    std::map<std::string, std::string> headers;  // names in lower case

    std::string Header(const std::string& name) const;
    std::string Path() const;  // unescaped, without the query
    std::string Query(const std::string& name) const;  // unescaped, or ""
    // Returns [first, last] of "bytes=first-last".
    std::optional<std::pair<uint64_t, uint64_t>> Range() const;
  };
  struct Reply {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    // Closes the connection after this many bytes of the body.
    std::optional<size_t> cut_after;
    // After the head and `cut_after` bytes nothing is sent until the client or
    // the server ends.
    bool stall = false;
    // Bytes instead of a response; with `stall` nothing follows them.
    std::optional<std::string> raw;
    // Sent after `raw` every 2 ms, until the client ends.
    std::string drip;
  };
  using Handler = std::function<Reply(const Request&)>;

  // `handler` is called by several threads.
  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string url() const;  // "http://127.0.0.1:port"
  // Refuses connections from now on, and ends those that are open.
  void Stop();

 private:
  void Accept();
  void Serve(int fd);
  // Returns false at the connection's end.
  bool ServeOne(int fd, std::string* buffer);
  // Waits for the peer's close or the server's end.
  void WaitForEnd(int fd) const;
  bool Wait(int fd) const;

  const Handler handler_;
  int listener_ = -1;
  int stop_ = -1;  // an eventfd
  int port_ = 0;
  std::thread acceptor_;
  Mutex mu_;
  std::list<std::thread> connections_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
