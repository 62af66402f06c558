// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/verdict.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "core/status.h"
#include "worker/source/storage/sigv4.h"
#include "worker/source/storage/xml.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxMessageBytes = 200;
using Failure = HttpResponse::Failure;
using Kind = Verdict::Kind;

// What S3 says in the body of an error.
struct ErrorBody {
  std::string code;
  std::string message;
  std::string region;
};

ErrorBody ParseErrorBody(const std::string& body) {
  ErrorBody out;
  // What is malformed after these elements does not make them worse.
  (void)ForEachElement(body,
                       [&](const std::string& path, const std::string& text) {
                         if (path == "Error/Code") out.code = text;
                         if (path == "Error/Message") out.message = text;
                         if (path == "Error/Region") out.region = text;
                       });
  return out;
}

// Printable, short, without secrets.
std::string Clean(std::string_view text, const Credentials& credentials) {
  std::string out = credentials.Redact(text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      ' ');
  if (out.size() > kMaxMessageBytes) out = out.substr(0, kMaxMessageBytes);
  return out;
}

bool IsRetriedStatus(int status, std::string_view code) {
  if (status == 400) return code == "RequestTimeout";
  return status == 408 || status == 425 || status == 429 ||
         (status >= 500 && status != 501 && status != 505);
}

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
    case 410:
      return absl::StatusCode::kNotFound;
    case 405:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 412:
      return absl::StatusCode::kFailedPrecondition;
    case 416:
      return absl::StatusCode::kOutOfRange;
    default:
      return absl::StatusCode::kUnknown;
  }
}

Verdict ExplainFailure(const HttpResponse& response, const Asked& asked) {
  const std::string text = Clean(response.failure_text, asked.credentials);
  switch (response.failure) {
    case Failure::kTimeout:
      return {Kind::kRetry, DeadlineExceeded("{}: {}", asked.what, text)};
    case Failure::kTooLarge:
      if (response.status == 200) {
        return {Kind::kFailed,
                Unimplemented("{}: the server answers with more than was asked "
                              "for; want one that serves ranges",
                              asked.what)};
      }
      return {Kind::kFailed, DataLoss("{}: {}", asked.what, text)};
    case Failure::kFinal:
      return {Kind::kFailed, FailedPrecondition("{}: {}", asked.what, text)};
    case Failure::kNone:
    case Failure::kConnection:
      break;
  }
  return {Kind::kRetry, Unavailable("{}: {}", asked.what, text)};
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
  // In milliseconds: a year that a server writes may be beyond the clock's own.
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
  if (!body.code.empty()) {
    said += fmt::format(" {}: {}", Clean(body.code, asked.credentials),
                        Clean(body.message, asked.credentials));
  }
  if (IsRetriedStatus(response.status, body.code)) {
    return {Kind::kRetry, Unavailable("{}: {}", asked.what, said),
            ParseRetryAfter(response.retry_after, now)};
  }
  if (body.code == "ExpiredToken" || body.code == "InvalidToken" ||
      body.code == "TokenRefreshRequired") {
    return {.kind = Kind::kFailed,
            .status = Unauthenticated(
                "{}: {} (the credentials of {} have expired: renew them)",
                asked.what, said, asked.credentials.source),
            .stale_credentials = true};
  }
  if (body.code == "RequestTimeTooSkewed") {
    return {
        Kind::kFailed,
        FailedPrecondition(
            "{}: {} (this host's clock says {}, the server's {})", asked.what,
            said, SigningTime(now), Clean(response.date, asked.credentials))};
  }
  const std::string region =
      response.bucket_region.empty() ? body.region : response.bucket_region;
  if (!asked.region.empty() && !region.empty() && region != asked.region &&
      (response.status < 400 || response.status == 400 ||
       response.status == 403)) {
    return {
        Kind::kFailed,
        FailedPrecondition(
            "{}: {} (the bucket is in region {}, asked was {}: set "
            "AWS_REGION)",
            asked.what, said, Clean(region, asked.credentials), asked.region)};
  }
  if (response.status == 403 && !asked.credentials.empty()) {
    said += fmt::format(" (as the key of {})", asked.credentials.source);
  }
  return {
      .kind = Kind::kFailed,
      .status = MakeStatus(CodeOf(response.status), "{}: {}", asked.what, said),
      .stale_credentials = response.status == 401 || response.status == 403,
      .changed = response.status == 412 || response.status == 416};
}

}  // namespace leat::worker
