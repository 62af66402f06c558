// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/status_server.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/connections/listener.h"

namespace leat::rpc {
namespace {

HttpTls TlsOf(const Security& security) {
  return {.cert = security.cert_pem,
          .key = security.key_pem,
          .ca = std::string(security.callers_ca())};
}

bool AreDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

}  // namespace

absl::StatusOr<std::string> HttpAddress(std::string_view text) {
  if (AreDigits(text)) return fmt::format("127.0.0.1:{}", text);
  const size_t colon = text.rfind(':');
  if (IsUnixAddress(text) || colon == std::string_view::npos || colon == 0 ||
      !AreDigits(text.substr(colon + 1)))
    return InvalidArgument(
        "--http {}: want HOST:PORT, or a PORT of this machine alone", text);
  return std::string(text);
}

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(
    const StatusServerOptions& options, const Security& security,
    const Access* access, const Clock* clock) {
  HttpOptions http;
  ASSIGN_OR_RETURN(http.address, HttpAddress(options.address));
  http.takes_posts = options.others != nullptr;
  if (absl::Status allowed = CheckListener(security, http.address);
      !allowed.ok())
    return Annotate(allowed, "--http");
  std::unique_ptr<StatusServer> server(new StatusServer(
      {.ready = options.ready,
       .metrics = options.metrics,
       .admit =
           [access](std::string_view token) {
             return access->AdmitToken(kMetricsRule, token).status();
           },
       .others = options.others},
      clock));
  server->is_tls_ = !security.cert_pem.empty() && !IsLocal(http.address);
  ASSIGN_OR_RETURN(
      server->server_,
      HttpServer::Start(http, server->is_tls_ ? TlsOf(security) : HttpTls{},
                        [pages = &server->pages_](const HttpRequest& request) {
                          return pages->Answer(request);
                        }));
  LOG_INFO("http.serving address={} tls={}", server->address(),
           server->is_tls_);
  return server;
}

absl::Status StatusServer::ReplaceTls(const Security& security) {
  if (!is_tls_) return absl::OkStatus();
  return server_->ReplaceTls(TlsOf(security));
}

}  // namespace leat::rpc
