// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/allowed.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/cluster/fault.h"
#include "core/freed.h"
#include "core/status.h"

namespace leat::worker {
namespace {

struct FreePath {
  void operator()(char* path) const { std::free(path); }
};

struct UrlParts {
  std::string scheme, host, port, path;
};

// Splits a URL by libcurl, which splits the same URL again for the request: so
// none can mean one host here and another one there. IPv4 numbers in any form
// come out as four decimal ones. nullopt: it is malformed.
std::optional<UrlParts> TakeApart(std::string_view text) {
  const std::unique_ptr<CURLU, Freed<curl_url_cleanup>> url(curl_url());
  if (url == nullptr ||
      curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(),
                   CURLU_PATH_AS_IS) != CURLUE_OK)
    return std::nullopt;
  const auto get = [&](CURLUPart part, std::string* into) {
    char* value = nullptr;
    if (curl_url_get(url.get(), part, &value, CURLU_DEFAULT_PORT) != CURLUE_OK)
      return false;
    *into = value;
    curl_free(value);
    return true;
  };
  UrlParts parts;
  if (!get(CURLUPART_SCHEME, &parts.scheme) ||
      !get(CURLUPART_HOST, &parts.host) || !get(CURLUPART_PORT, &parts.port) ||
      !get(CURLUPART_PATH, &parts.path))
    return std::nullopt;
  std::transform(parts.host.begin(), parts.host.end(), parts.host.begin(),
                 [](char c) {
                   return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
                 });
  return parts;
}

// True if `path` is `prefix`, or below it.
bool IsAtOrBelow(std::string_view path, std::string_view prefix) {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return path.starts_with(prefix) &&
         (path.size() == prefix.size() || path[prefix.size()] == '/' ||
          prefix.empty());
}

// True for "." or ".." between slashes, also escaped, once or more often, or
// before a ";" with parameters: a server may follow them to another place than
// the one that was compared.
bool HasDots(std::string_view path) {
  std::string plain(path.substr(0, path.find('?')));
  for (std::string once; (once = PercentDecode(plain)) != plain;)
    plain = std::move(once);  // it is shorter
  std::replace(plain.begin(), plain.end(), '\\', '/');
  for (size_t at = 0; at <= plain.size();) {
    const size_t end = std::min(plain.find('/', at), plain.size());
    std::string_view part = std::string_view(plain).substr(at, end - at);
    part = part.substr(0, part.find(';'));
    if (part == "." || part == "..") return true;
    at = end + 1;
  }
  return false;
}

// Returns the 4 bytes of IPv4, also inside IPv6, or 16 of IPv6; empty: neither.
std::string AddressBytes(const sockaddr_storage& address, uint16_t* port) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    *port = ntohs(v4.sin_port);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr};
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  *port = ntohs(v6.sin6_port);
  const std::string bytes(reinterpret_cast<const char*>(&v6.sin6_addr),
                          sizeof v6.sin6_addr);
  using namespace std::string_view_literals;
  const bool compatible = bytes.starts_with("\0\0\0\0\0\0\0\0\0\0\0\0"sv) &&
                          ntohl(v6.sin6_addr.s6_addr32[3]) > 1;
  if (compatible || bytes.starts_with("\0\0\0\0\0\0\0\0\0\0\xff\xff"sv) ||
      bytes.starts_with("\0\0\0\0\0\0\0\0\xff\xff\0\0"sv) ||
      bytes.starts_with("\0\x64\xff\x9b\0\0\0\0\0\0\0\0"sv))
    return bytes.substr(12);
  if (bytes.starts_with("\x20\x02"sv)) return bytes.substr(2, 4);  // 6to4
  return bytes;
}

std::string AddressAndPort(const std::string& address, std::string_view port) {
  return fmt::format("{}:{}", address, port);
}

// Returns nullopt if it is a name.
std::optional<std::string> AddressIn(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  const std::string text(host);
  uint16_t port = 0;
  sockaddr_storage storage{};
  storage.ss_family = AF_INET;
  if (inet_pton(AF_INET, text.c_str(),
                &reinterpret_cast<sockaddr_in&>(storage).sin_addr) == 1)
    return AddressBytes(storage, &port);
  storage.ss_family = AF_INET6;
  if (inet_pton(AF_INET6, text.c_str(),
                &reinterpret_cast<sockaddr_in6&>(storage).sin6_addr) == 1)
    return AddressBytes(storage, &port);
  return std::nullopt;
}

std::string_view SpecialV4(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (at(0) == 127 || at(0) == 0) return "loopback";
  if (at(0) == 169 && at(1) == 254) return "link-local";
  // Addresses of Alibaba, Azure and Oracle.
  constexpr std::array<std::array<uint8_t, 4>, 3> kMetadata = {
      {{100, 100, 100, 200}, {168, 63, 129, 16}, {192, 0, 0, 192}}};
  for (const auto& each : kMetadata)
    if (std::memcmp(bytes.data(), each.data(), 4) == 0) return "metadata";
  return "";
}

// Returns why CheckAddress refuses an address; empty: it does not.
std::string_view SpecialBytes(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.size() == 4) return SpecialV4(bytes);
  if (bytes.size() != 16) return "unknown";
  if (bytes.substr(0, 15) == "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv)
    return static_cast<uint8_t>(bytes[15]) <= 1 ? "loopback" : "";
  if (bytes[0] == '\xfe' && (static_cast<uint8_t>(bytes[1]) & 0xc0) == 0x80)
    return "link-local";
  // Amazon's fd00:ec2::/32 and Google's fd20:ce::/32.
  if (bytes.starts_with("\xfd\x00\x0e\xc2"sv) ||
      bytes.starts_with("\xfd\x20\x00\xce"sv))
    return "metadata";
  // 64:ff9b:1::/48 of RFC 8215: networks put IPv4 at different positions in it.
  if (bytes.starts_with("\0\x64\xff\x9b\0\1"sv)) return "translated";
  return "";
}

// True if the job itself names the loopback.
bool SaysLoopback(std::string_view url) {
  const std::optional<UrlParts> parts = TakeApart(url);
  if (!parts) return false;
  if (parts->host == "localhost") return true;
  const std::optional<std::string> address = AddressIn(parts->host);
  return address && SpecialBytes(*address) == "loopback";
}

// Makes a path absolute, without "." and "..", by the text alone.
std::string ByText(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// Returns the path of a descriptor; empty: it is too long, or /proc is missing.
std::string PathOfFd(int fd) {
  std::array<char, PATH_MAX> path;
  const ssize_t size = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(),
                                path.data(), path.size());
  // A path that fills the buffer was cut.
  if (size <= 0 || size >= static_cast<ssize_t>(path.size())) return "";
  return {path.data(), static_cast<size_t>(size)};
}

// Returns where a path that cannot be opened leads to: the first part of it
// that is missing, or cannot be examined, after all links. Empty: unknown.
//
//   /in/link/x, where /in/link leads to /out, which has no x   ─► /out/x
std::string WhereItEnds(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as the kernel
  std::error_code error;
  std::string left = std::filesystem::absolute(path, error).string();
  std::string there = "/";  // without links
  for (int links = 0; !left.empty();) {
    const size_t end = left.find('/');
    const std::string part = left.substr(0, end);
    left = end == std::string::npos ? "" : left.substr(end + 1);
    if (part.empty() || part == ".") continue;
    const std::string next =
        there.ends_with('/') ? there + part : there + "/" + part;
    const int fd = open(next.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return next;
    std::array<char, PATH_MAX> target;
    const ssize_t size = readlinkat(fd, "", target.data(), target.size());
    if (size < 0) there = PathOfFd(fd);  // no link; ".." is gone from it
    close(fd);
    if (there.empty()) return "";
    if (size < 0) continue;
    if (++links > kMaxLinks || size == static_cast<ssize_t>(target.size()))
      return "";
    const std::string to(target.data(), static_cast<size_t>(size));
    if (to.starts_with('/')) there = "/";
    left = to + "/" + left;
  }
  return there;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const AllowedReads>> AllowedReads::Create(
    const std::optional<std::vector<std::string>>& prefixes,
    const GetEnv& env) {
  std::shared_ptr<AllowedReads> allowed(new AllowedReads);
  allowed->all_ = !prefixes.has_value();
  if (prefixes.has_value())
    for (const std::string& prefix : *prefixes)
      RETURN_IF_ERROR(allowed->Add(prefix));
  for (const char* name :
       {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* const proxy = env(name);
    if (proxy == nullptr || *proxy == '\0') continue;
    std::string url = proxy;  // of http, socks5 and the like
    const size_t scheme = url.find("://");
    url.replace(0, scheme == std::string::npos ? 0 : scheme + 3, "http://");
    const std::optional<UrlParts> parts = TakeApart(url);
    if (!parts) continue;
    allowed->AddAddress(parts->host, parts->port);
    // The port that libcurl uses for a proxy without one.
    allowed->AddAddress(parts->host, "1080");
  }
  return allowed;
}

absl::Status AllowedReads::Add(const std::string& prefix) {
  const auto wrong = [&] {
    return InvalidArgument(
        "--allow \"{}\": want an absolute path, s3://BUCKET[/PREFIX], "
        "gs://BUCKET[/PREFIX] or http(s)://HOST[:PORT][/PREFIX]",
        prefix);
  };
  const absl::StatusOr<StorageUri> uri = ParseUri(prefix);
  if (!uri.ok()) return wrong();
  if (uri->scheme == UriScheme::kLocal) {
    if (!uri->path.starts_with('/')) return wrong();
    std::string folder = ByText(uri->path);
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    folders_.push_back(std::move(folder));
    return absl::OkStatus();
  }
  if (uri->scheme != UriScheme::kHttp) {
    if (HasDots(uri->path)) return wrong();
    buckets_.push_back({uri->scheme, uri->bucket, uri->path});
    return absl::OkStatus();
  }
  std::optional<UrlParts> parts = TakeApart(uri->path);
  if (!parts || HasDots(parts->path) ||
      prefix.find_first_of("?#@") != std::string::npos)
    return wrong();
  AddAddress(parts->host, parts->port);
  hosts_.push_back({std::move(parts->scheme), std::move(parts->host),
                    std::move(parts->port), std::move(parts->path)});
  return absl::OkStatus();
}

void AllowedReads::AddAddress(std::string_view host, std::string_view port) {
  if (host == "localhost") {
    for (const char* own : {"127.0.0.1", "::1"}) AddAddress(own, port);
  } else if (const auto address = AddressIn(host)) {
    addresses_.insert(AddressAndPort(*address, port));
  }
}

absl::Status AllowedReads::Refused(std::string_view name) const {
  if (folders_.empty() && buckets_.empty() && hosts_.empty())
    return WithFault(
        PermissionDenied("{}: this worker may read nothing: it can be reached "
                         "from other machines, and has no --allow",
                         name),
        Fault::kWorker);
  return WithFault(
      PermissionDenied("{}: it is outside of what this worker may read: want "
                       "it below a prefix of its --allow",
                       name),
      Fault::kWorker);
}

// The path of an opened file has no links, so most folders are found by their
// text; folders that are themselves links are followed.
bool AllowedReads::IsBelowFolder(const std::string& path) const {
  if (!path.starts_with('/')) return false;
  for (const std::string& folder : folders_)
    if (IsAtOrBelow(path, folder)) return true;
  for (const std::string& folder : folders_) {
    const std::unique_ptr<char, FreePath> real(
        realpath(folder.c_str(), nullptr));
    if (real != nullptr && IsAtOrBelow(path, real.get())) return true;
  }
  return false;
}

absl::Status AllowedReads::CheckOpened(int fd, std::string_view name) const {
  if (all_) return absl::OkStatus();
  const std::string path = PathOfFd(fd);
  if (path.empty() && errno == ENOENT)
    return WithFault(FailedPrecondition(
                         "{}: --allow needs /proc, which is not mounted", name),
                     Fault::kWorker);
  if (IsBelowFolder(path)) return absl::OkStatus();
  return Refused(name);
}

absl::Status AllowedReads::Open(const std::string& path, int flags,
                                std::string_view name, int* fd) const {
  flags |= O_CLOEXEC;
  if (all_) {
    *fd = open(path.c_str(), flags);
    return absl::OkStatus();
  }
  *fd = -1;
  const int found =
      open(path.c_str(), O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
  if (found < 0) {
    const int error = errno;
    if (!IsBelowFolder(ByText(path)) || !IsBelowFolder(WhereItEnds(path)))
      return Refused(name);
    errno = error;
    return absl::OkStatus();
  }
  const absl::Status status = CheckOpened(found, name);
  // Follows the link in /proc, and no link after it.
  if (status.ok())
    *fd = open(fmt::format("/proc/self/fd/{}", found).c_str(),
               flags & ~O_NOFOLLOW);
  const int error = errno;
  close(found);
  errno = error;
  return status;
}

absl::Status AllowedReads::CheckEntry(int dir, const char* entry,
                                      std::string_view name) const {
  if (all_) return absl::OkStatus();
  const int found = openat(dir, entry, O_PATH | O_CLOEXEC);
  if (found < 0)
    return IsBelowFolder(WhereItEnds(PathOfFd(dir) + "/" + entry))
               ? absl::OkStatus()
               : Refused(name);
  const absl::Status status = CheckOpened(found, name);
  close(found);
  return status;
}

absl::Status AllowedReads::CheckRemote(const StorageUri& uri) const {
  if (all_) return absl::OkStatus();
  if (uri.scheme == UriScheme::kHttp)
    return CheckUrl(uri.path, uri.path).ok() ? absl::OkStatus()
                                             : Refused(uri.name);
  if (!HasDots(uri.path))
    for (const Bucket& each : buckets_)
      if (each.scheme == uri.scheme && each.bucket == uri.bucket &&
          IsAtOrBelow(uri.path, each.prefix))
        return absl::OkStatus();
  return Refused(uri.name);
}

absl::Status AllowedReads::CheckUrl(std::string_view url,
                                    std::string_view asked) const {
  const std::optional<UrlParts> parts = TakeApart(url);
  if (const auto address = parts ? AddressIn(parts->host) : std::nullopt)
    RETURN_IF_ERROR(
        CheckBytes(*address, std::atoi(parts->port.c_str()), asked));
  if (all_) return absl::OkStatus();
  if (parts)
    for (const Host& each : hosts_)
      if (each.scheme == parts->scheme && each.host == parts->host &&
          each.port == parts->port &&
          (each.path == "/" ||
           (IsAtOrBelow(parts->path, each.path) && !HasDots(parts->path))))
        return absl::OkStatus();
  // The URL is not shown, because a server may have put anything into it.
  return Refused(parts ? parts->scheme + "://" + parts->host
                       : "a malformed URL");
}

absl::Status AllowedReads::CheckAddress(const sockaddr_storage& address,
                                        std::string_view asked) const {
  uint16_t port = 0;
  const std::string bytes = AddressBytes(address, &port);
  return CheckBytes(bytes, port, asked);
}

absl::Status AllowedReads::CheckAddress(std::string_view ip, int port,
                                        std::string_view asked) const {
  return CheckBytes(AddressIn(ip).value_or(""), port, asked);
}

absl::Status AllowedReads::CheckBytes(const std::string& bytes, int port,
                                      std::string_view asked) const {
  const std::string_view special = SpecialBytes(bytes);
  if (special.empty() ||
      addresses_.contains(AddressAndPort(bytes, fmt::format("{}", port))))
    return absl::OkStatus();
  if (all_ && special == "loopback" && SaysLoopback(asked))
    return absl::OkStatus();
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = bytes.size() == 4;
  if (bytes.empty() || inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data(),
                                 text.data(), text.size()) == nullptr)
    return PermissionDenied("its host has an address of neither IPv4 nor IPv6");
  const std::string_view open = v4 ? "" : "[", close = v4 ? "" : "]";
  return PermissionDenied(
      "its host, or one that it redirects to, has the {} address {}: want "
      "--allow http://{}{}{}:{} if that is meant",
      special, text.data(), open, text.data(), close, port);
}

}  // namespace leat::worker
