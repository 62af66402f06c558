// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/uri.h"

#include <algorithm>

#include "core/redaction.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxUriBytes = 4096;
constexpr std::string_view kSeparator = "://";

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
}

bool IsBucketName(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 255 &&
         std::all_of(bucket.begin(), bucket.end(),
                     [](char c) { return IsUnreserved(c) && c != '~'; });
}

absl::StatusOr<std::string> FilePath(std::string_view rest,
                                     std::string_view name) {
  constexpr std::string_view kLocalhost = "localhost/";
  if (rest.starts_with(kLocalhost)) rest.remove_prefix(kLocalhost.size() - 1);
  if (!rest.starts_with('/')) {
    return InvalidArgument("{}: want file:///path, of this host", name);
  }
  std::string path = PercentDecode(rest);
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("{}: a zero byte is in no path", name);
  }
  return path;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string PercentEncode(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || keep.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string PercentDecode(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out +=
          static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

absl::StatusOr<StorageUri> ParseUri(std::string_view uri) {
  StorageUri out;
  if (uri.empty()) return InvalidArgument("an empty path: want a path or URI");
  out.name = RedactedUri(uri.substr(0, kMaxUriBytes));
  if (uri.size() > kMaxUriBytes) {
    return InvalidArgument("{}...: a URI of {} bytes, want at most {}",
                           out.name.substr(0, 80), uri.size(), kMaxUriBytes);
  }
  if (uri.find('\0') != std::string_view::npos) {
    return InvalidArgument("a URI with a zero byte after {} bytes",
                           uri.find('\0'));
  }
  const std::string scheme = SchemeOf(uri);
  if (scheme.empty()) {
    out.path = std::string(uri);
    return out;
  }
  const std::string_view rest = uri.substr(scheme.size() + kSeparator.size());
  if (scheme == "file") {
    ASSIGN_OR_RETURN(out.path, FilePath(rest, out.name));
    return out;
  }
  if (scheme == "http" || scheme == "https") {
    if (rest.empty() || rest.front() == '/') {
      return InvalidArgument("{}: no host after {}://", out.name, scheme);
    }
    out.scheme = UriScheme::kHttp;
    out.path = std::string(uri.substr(0, uri.find('#')));
    return out;
  }
  if (scheme != "s3" && scheme != "gs") {
    return InvalidArgument(
        "{}: unknown scheme '{}', want a path, file, http, https, s3 or gs",
        out.name, scheme);
  }
  out.scheme = scheme == "s3" ? UriScheme::kS3 : UriScheme::kGs;
  const size_t slash = std::min(rest.find('/'), rest.size());
  out.bucket = std::string(rest.substr(0, slash));
  out.path = std::string(rest.substr(std::min(slash + 1, rest.size())));
  if (!IsBucketName(out.bucket)) {
    const std::string_view shown = out.name;
    const std::string_view bucket = shown.substr(scheme.size() + 3);
    return InvalidArgument("{}: '{}' is no bucket's name", shown,
                           bucket.substr(0, bucket.find('/')));
  }
  return out;
}

std::string JoinUri(std::string_view uri, std::string_view name) {
  const std::string scheme = SchemeOf(uri);
  const bool http = scheme == "http" || scheme == "https";
  const size_t end =
      http ? std::min(uri.find_first_of("?#"), uri.size()) : uri.size();
  std::string out(uri.substr(0, end));
  if (!out.ends_with('/')) out += '/';
  out +=
      http || scheme == "file" ? PercentEncode(name, "/") : std::string(name);
  out += uri.substr(end);
  return out;
}

bool IsLocalUri(std::string_view uri) {
  const std::string scheme = SchemeOf(uri);
  return scheme.empty() || scheme == "file";
}

}  // namespace leat::worker
