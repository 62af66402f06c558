// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: answers GET and HEAD of a few small pages over HTTP/1.1, and POST
// where it is told to, on one thread of its own.
//
// Everything that a caller can take is bounded: the bytes of a header and of a
// body, connections, those of one address, and the time for a request and for
// its answer. Where connections are used up, the one whose request has been
// under way the longest is closed for the newest, so that callers who send
// nothing keep nobody out. Answers without an end (HttpResponse::more) are
// bounded in number by themselves, and hold one text each.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "rpc/http/message.h"

namespace leat::rpc {

struct HttpOptions {
  std::string address;  // "HOST:PORT", port 0: any
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 4 << 10;
  bool takes_posts = false;
  size_t max_connections = 64;
  size_t max_connections_per_address = 48;
  // Answers without an end; one more is answered 503.
  size_t max_endless = 16;
  // For a request to be complete, which a connection without one waits for too;
  // and for its answer to be taken.
  Duration request_timeout = std::chrono::seconds(10);
};

// PEM. No certificate: plaintext. With `ca`, callers are asked for a
// certificate of it: who shows another one is refused, and who shows none is
// not certified.
struct HttpTls {
  std::string cert, key, ca;
};

class HttpServer {
 public:
  // Called on the server's thread: what takes long holds all callers up. The
  // request's views end with the call.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Errors: of Listener::Bind; kInvalidArgument: `tls`; kResourceExhausted: no
  // thread can be had.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HttpOptions& options, const HttpTls& tls, Handler handler);
  // Closes all connections. The handler does not run any more.
  ~HttpServer();

  // The bound port is filled in.
  const std::string& address() const { return address_; }
  // For connections from now on. kInvalidArgument: `tls`;
  // kFailedPrecondition: the server speaks plaintext, and would not any more,
  // or the other way round. After an error nothing has changed.
  absl::Status ReplaceTls(const HttpTls& tls);

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);

  std::string address_;
  const std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace leat::rpc
