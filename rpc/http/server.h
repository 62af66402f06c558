// SPDX-License-Identifier: Apache-2.0
//
// HttpServer answers GET and HEAD of a few small pages over HTTP/1.1, and POST
// if enabled, on its own thread.
//
// Every resource that a caller can use is bounded: the bytes of a header and of
// a body, connections, connections per address, and the time for a request and
// for its response. If connections run out, the one whose request has been open
// longest is closed for the newest, so that callers who send nothing do not
// lock out others. Endless responses (HttpResponse::more) have their own limit,
// and hold one text each.
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
  // Maximum number of endless responses; one more is answered 503.
  size_t max_endless = 16;
  // Time for a request to be complete, including the wait for its first byte;
  // and for its response to be read.
  Duration request_timeout = std::chrono::seconds(10);
};

// PEM. Without a certificate: plaintext. With `ca`, callers are asked for a
// certificate of it: a caller with another one is refused, and a caller without
// one is not certified.
struct HttpTls {
  std::string cert, key, ca;
};

class HttpServer {
 public:
  // Called on the server's thread: a slow handler delays all callers. The
  // request's views end with the call.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Errors: of Listener::Bind; kInvalidArgument: `tls`; kResourceExhausted: no
  // thread is available.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HttpOptions& options, const HttpTls& tls, Handler handler);
  // Closes all connections. The handler is not called any more.
  ~HttpServer();

  // Returns the address with the bound port.
  const std::string& address() const { return address_; }
  // Sets the certificates of new connections. kInvalidArgument: `tls`;
  // kFailedPrecondition: it would change from plaintext to TLS or back. After
  // an error nothing has changed.
  absl::Status ReplaceTls(const HttpTls& tls);

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);

  std::string address_;
  const std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace leat::rpc
