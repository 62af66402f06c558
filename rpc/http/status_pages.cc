// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/status_pages.h"

#include "core/status.h"

namespace leat::rpc {
namespace {

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

HttpResponse Refusal(const absl::Status& why) {
  unsigned status = 500;
  if (absl::IsUnauthenticated(why)) status = 401;
  if (absl::IsPermissionDenied(why)) status = 403;
  if (absl::IsNotFound(why)) status = 404;
  if (absl::IsInvalidArgument(why)) status = 400;
  if (absl::IsUnavailable(why)) status = 503;
  return HttpResponse::Text(status, fmt::format("{}\n", Message(why)));
}

namespace {

HttpResponse NoCertificate() {
  return Refusal(Unauthenticated(
      "no certificate: want one of the authorities of --tls-ca"));
}

}  // namespace

HttpResponse StatusPages::Answer(const HttpRequest& request) {
  const bool own = request.path == "/livez" || request.path == "/readyz" ||
                   request.path == "/metrics";
  if (!own && sources_.others)
    return request.certified ? sources_.others(request) : NoCertificate();
  if (request.is_post) return HttpResponse::Text(405, "want GET or HEAD\n");
  if (request.path == "/livez") return HttpResponse::Text(200, "ok\n");
  if (request.path == "/metrics") return Metrics(request);
  if (request.path != "/readyz")
    return HttpResponse::Text(404, "want /livez, /readyz or /metrics\n");
  const absl::Status ready = sources_.ready();
  if (ready.ok()) return HttpResponse::Text(200, "ok\n");
  return HttpResponse::Text(503, fmt::format("{}\n", Message(ready)));
}

HttpResponse StatusPages::Metrics(const HttpRequest& request) {
  if (!request.certified) return NoCertificate();
  if (const absl::Status admitted = sources_.admit(request.token);
      !admitted.ok())
    return Refusal(admitted);
  const MonotonicTime now = clock_->Now();
  if (metrics_ == nullptr || now >= made_at_ + kMetricsAge) {
    metrics_ = std::make_shared<const std::string>(sources_.metrics());
    made_at_ = now;
  }
  HttpResponse response;
  response.type = kMetricsType;
  response.body = metrics_;
  return response;
}

}  // namespace leat::rpc
