// SPDX-License-Identifier: Apache-2.0
//
// StatusServer serves a daemon's StatusPages at the address of --http, with the
// daemon's rules of access.
//
// On loopback it speaks plaintext; elsewhere TLS with the daemon's
// certificates, and it is refused under the same conditions as the gRPC
// listener. The metrics require a token if the daemon's calls do.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "rpc/access/access.h"
#include "rpc/call/auth.h"
#include "rpc/http/server.h"
#include "rpc/http/status_pages.h"

namespace leat::rpc {

struct StatusServerOptions {
  std::string address;  // "HOST:PORT"; "PORT": on 127.0.0.1
  // The server calls all of these on its thread.
  std::function<absl::Status()> ready;
  std::function<std::string()> metrics;
  // Answers other paths, including POST; nullptr: there are none.
  std::function<HttpResponse(const HttpRequest&)> others = nullptr;
};

class StatusServer {
 public:
  // `access` and `clock` outlive it. Errors: of CheckListener and
  // HttpServer::Start; kInvalidArgument: the address.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(
      const StatusServerOptions& options, const Security& security,
      const Access* access, const Clock* clock);

  const std::string& address() const { return server_->address(); }
  // Sets the certificates of new connections. Errors: as
  // HttpServer::ReplaceTls.
  absl::Status ReplaceTls(const Security& security);

 private:
  StatusServer(StatusSources sources, const Clock* clock)
      : pages_(std::move(sources), clock) {}

  StatusPages pages_;
  bool is_tls_ = false;
  std::unique_ptr<HttpServer> server_;  // last: it calls pages_
};

// Returns "127.0.0.1:7412" for "7412"; other texts unchanged. kInvalidArgument:
// no port, or a Unix socket.
absl::StatusOr<std::string> HttpAddress(std::string_view text);

}  // namespace leat::rpc
