// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/remote/verdict.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/faults/fault_rules.h"
#include "worker/source/storage/s3/sigv4.h"
#include "worker/source/storage/s3/xml.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxMessageBytes = 200;
using Failure = HttpResponse::Failure;
using Kind = Verdict::Kind;

// S3's data in the body of an error.
struct ErrorBody {
  std::string code;
  std::string message;
  std::string region;
};

ErrorBody ParseErrorBody(const std::string& body) {
  ErrorBody out;
  // A malformed rest does not invalidate these elements.
  (void)ForEachElement(body,
                       [&](const std::string& path, const std::string& text) {
                         if (path == "Error/Code") out.code = text;
                         if (path == "Error/Message") out.message = text;
                         if (path == "Error/Region") out.region = text;
                       });
  return out;
}

// Makes a text printable and short, without secrets.
std::string Clean(std::string_view text, const Credentials& credentials) {
  std::string out = credentials.Redact(text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      ' ');
  if (out.size() > kMaxMessageBytes) out = out.substr(0, kMaxMessageBytes);
  return out;
}

// A permanent error, by the fault of this worker or its network.
Verdict Failed(const absl::Status& status) {
  return {Kind::kFailed, WithFault(status, Fault::kWorker)};
}

Verdict ExplainFailure(const HttpResponse& response, const Asked& asked) {
  const std::string text = Clean(response.failure_text, asked.credentials);
  switch (response.failure) {
    case Failure::kTimeout:
      return {Kind::kRetry,
              WithFault(DeadlineExceeded("{}: {}", asked.what, text),
                        Fault::kTransient)};
    case Failure::kTooLarge:
      if (response.status == 200) {
        return Failed(
            Unimplemented("{}: the server answers with more than was asked "
                          "for; want one that serves ranges",
                          asked.what));
      }
      return Failed(DataLoss("{}: {}", asked.what, text));
    case Failure::kFinal:
      return Failed(FailedPrecondition("{}: {}", asked.what, text));
    case Failure::kRefused:
      return Failed(PermissionDenied("{}: {}", asked.what, text));
    case Failure::kNone:
    case Failure::kConnection:
      break;
  }
  return {Kind::kRetry, WithFault(Unavailable("{}: {}", asked.what, text),
                                  Fault::kTransient)};
}

}  // namespace

std::optional<StorageMs> ParseRetryAfter(std::string_view text, WallTime now) {
  constexpr int64_t kMaxSeconds = 1'000'000'000;
  int64_t seconds = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (seconds < 0) return std::nullopt;
    return std::chrono::seconds(std::min(seconds, kMaxSeconds));
  }
  std::tm utc{};
  if (strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc) ==
      nullptr) {
    return std::nullopt;
  }
  // In milliseconds: a year from a server may be beyond the clock's own range.
  const StorageMs at = std::chrono::seconds(timegm(&utc));
  return std::max(StorageMs(0), at - std::chrono::duration_cast<StorageMs>(
                                         now.time_since_epoch()));
}

Verdict Explain(const HttpResponse& response, const Asked& asked,
                WallTime now) {
  if (response.failure != Failure::kNone) {
    return ExplainFailure(response, asked);
  }
  const ErrorBody body = ParseErrorBody(response.body);
  std::string said = fmt::format("{}", response.status);
  // A plain URL may be any server, and its text must not be repeated.
  if (!body.code.empty() && !asked.region.empty()) {
    said += fmt::format(" {}: {}", Clean(body.code, asked.credentials),
                        Clean(body.message, asked.credentials));
  }
  const FaultRule rule = RuleOfHttp(response.status, body.code);
  if (rule.fault == Fault::kTransient) {
    return {Kind::kRetry,
            WithFault(MakeStatus(rule.code, "{}: {}", asked.what, said),
                      rule.fault),
            ParseRetryAfter(response.retry_after, now)};
  }
  if (body.code == "ExpiredToken" || body.code == "InvalidToken" ||
      body.code == "TokenRefreshRequired") {
    return {.kind = Kind::kFailed,
            .status = WithFault(
                Unauthenticated(
                    "{}: {} (the credentials of {} have expired: renew them)",
                    asked.what, said, asked.credentials.source),
                Fault::kWorker),
            .stale_credentials = true};
  }
  if (body.code == "RequestTimeTooSkewed") {
    return Failed(FailedPrecondition(
        "{}: {} (this host's clock says {}, the server's {})", asked.what, said,
        SigningTime(now), Clean(response.date, asked.credentials)));
  }
  const std::string region =
      response.bucket_region.empty() ? body.region : response.bucket_region;
  if (!asked.region.empty() && !region.empty() && region != asked.region &&
      (response.status < 400 || response.status == 400 ||
       response.status == 403)) {
    return Failed(FailedPrecondition(
        "{}: {} (the bucket is in region {}, asked was {}: set AWS_REGION)",
        asked.what, said, Clean(region, asked.credentials), asked.region));
  }
  if (!asked.region.empty() && response.status >= 300 &&
      response.status < 400) {
    return Failed(FailedPrecondition(
        "{}: {} (the bucket is elsewhere, and requests that are signed are not "
        "sent on: set AWS_REGION to the bucket's region, or AWS_ENDPOINT_URL "
        "to the service that has it)",
        asked.what, said));
  }
  if (response.status == 403 && !asked.credentials.empty()) {
    said += fmt::format(" (as the key of {})", asked.credentials.source);
  }
  if (response.status == 407)
    said += " (the proxy of this worker's http_proxy wants another user)";
  return {.kind = Kind::kFailed,
          .status = WithFault(MakeStatus(rule.code, "{}: {}", asked.what, said),
                              rule.fault),
          .stale_credentials = response.status == 401 || response.status == 403,
          .changed = response.status == 412 || response.status == 416};
}

}  // namespace leat::worker
