// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/remote/target.h"

#include <algorithm>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/storage/s3/sigv4.h"

namespace leat::worker {
namespace {

constexpr std::string_view kDefaultRegion = "us-east-1";

// True for names that can be a host's first label under Amazon's certificate.
bool IsHostLabel(std::string_view bucket) {
  return bucket.size() <= 63 && !bucket.starts_with('-') &&
         !bucket.ends_with('-') &&
         std::all_of(bucket.begin(), bucket.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// Returns where the path of a URL begins.
size_t PathOf(std::string_view url) {
  const size_t host = url.find("://");
  return std::min(url.find('/', host + 3), url.size());
}

// Returns the header Host of a request to `url`: libcurl leaves the scheme's own
// port out.
std::string HostOf(std::string_view url) {
  const size_t host = url.find("://") + 3;
  std::string_view out = url.substr(host, PathOf(url) - host);
  const std::string_view port = url.starts_with("https") ? ":443" : ":80";
  if (out.ends_with(port)) out.remove_suffix(port.size());
  return std::string(out);
}

absl::Status CheckEndpoint(std::string_view endpoint) {
  const bool http =
      endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (http && endpoint.find_first_of("?#@ ") == std::string_view::npos &&
      !endpoint.ends_with("://")) {
    return absl::OkStatus();
  }
  return InvalidArgument("S3 endpoint '{}': want http(s)://host[:port][/path]",
                         RedactedUri(endpoint));
}

}  // namespace

absl::StatusOr<CloudSettings> S3Account::Load() const {
  return scheme_ == UriScheme::kS3 ? LoadS3Settings(env_)
                                   : LoadGsSettings(env_);
}

absl::StatusOr<std::shared_ptr<S3Account>> S3Account::Create(
    UriScheme scheme, const StorageConfig& config, GetEnv env) {
  std::shared_ptr<S3Account> out(
      new S3Account(scheme, config.anonymous, std::move(env)));
  ASSIGN_OR_RETURN(CloudSettings settings, out->Load());
  const bool s3 = scheme == UriScheme::kS3;
  out->region_ =
      s3 && !config.s3_region.empty() ? config.s3_region : settings.region;
  if (out->region_.empty()) out->region_ = std::string(kDefaultRegion);
  out->endpoint_ = s3 ? config.s3_endpoint : config.gs_endpoint;
  if (out->endpoint_.empty()) out->endpoint_ = settings.endpoint;
  while (out->endpoint_.ends_with('/')) out->endpoint_.pop_back();
  if (!out->endpoint_.empty()) RETURN_IF_ERROR(CheckEndpoint(out->endpoint_));
  if (config.anonymous) return out;
  if (settings.credentials.empty()) {
    return Unauthenticated("no keys for {}://; looked in {}", s3 ? "s3" : "gs",
                           settings.looked_in);
  }
  const MutexLock lock(&out->mu_);
  out->credentials_ = std::move(settings.credentials);
  return out;
}

bool S3Account::Refresh() {
  if (anonymous_) return false;
  auto settings = Load();
  if (!settings.ok() || settings->credentials.empty()) return false;
  const MutexLock lock(&mu_);
  if (settings->credentials == credentials_) return false;
  credentials_ = std::move(settings->credentials);
  return true;
}

Credentials S3Account::credentials() const {
  const MutexLock lock(&mu_);
  return credentials_;
}

std::string S3Account::BucketUrl(const std::string& bucket) const {
  if (!endpoint_.empty()) return fmt::format("{}/{}", endpoint_, bucket);
  if (IsHostLabel(bucket)) {
    return fmt::format("https://{}.s3.{}.amazonaws.com", bucket, region_);
  }
  return fmt::format("https://s3.{}.amazonaws.com/{}", region_, bucket);
}

HttpRequest Target::Request(bool head, WallTime now) const {
  HttpRequest out = {.head = head, .url = url};
  if (account == nullptr) {
    out.follow_redirects = true;
    return out;
  }
  out.trusted_host = account->has_endpoint();
  const std::string canonical = CanonicalQuery(query);
  const size_t path = PathOf(url);
  if (path == url.size()) out.url += '/';
  const std::string signed_path = out.url.substr(path);
  if (!canonical.empty()) out.url += "?" + canonical;
  const Credentials keys = account->credentials();
  if (keys.empty()) return out;
  const std::string date = SigningTime(now);
  SignedRequest request = {
      .method = head ? "HEAD" : "GET", .path = signed_path, .query = query};
  request.headers = {{"host", HostOf(url)},
                     {"x-amz-content-sha256", std::string(kEmptyPayload)},
                     {"x-amz-date", date}};
  if (!keys.token.empty()) {
    request.headers.emplace_back("x-amz-security-token", keys.token);
  }
  for (const auto& [name, value] : request.headers) {
    if (name != "host") out.headers.push_back(name + ": " + value);
  }
  out.headers.push_back("Authorization: " +
                        Authorization(request, {.region = account->region()},
                                      date, keys.key_id, keys.secret));
  return out;
}

Asked Target::AskedFor(std::string_view what) const {
  Asked out = {.what = fmt::format("{}: {}", name, what)};
  if (account != nullptr) {
    out.region = account->region();
    out.credentials = account->credentials();
  }
  return out;
}

Target ObjectTarget(const StorageUri& uri, std::shared_ptr<S3Account> account) {
  Target out = {.name = uri.name, .account = std::move(account)};
  out.url = uri.scheme == UriScheme::kHttp
                ? uri.path
                : fmt::format("{}/{}", out.account->BucketUrl(uri.bucket),
                              PercentEncode(uri.path, "/"));
  return out;
}

}  // namespace leat::worker
