// SPDX-License-Identifier: Apache-2.0
#include "rpc/tls/secret_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/cluster/roles.h"
#include "core/log.h"
#include "core/status.h"
#include "core/system_roots.h"

namespace leat::rpc {
namespace {

constexpr size_t kMaxToken = 4096, kMaxPem = 1 << 20;

absl::Status CannotRead(std::string_view flag, const std::string& path,
                        int error) {
  const auto code =
      error == ENOENT || error == ENOTDIR ? absl::StatusCode::kNotFound
      : error == EACCES || error == EPERM ? absl::StatusCode::kPermissionDenied
                                          : absl::StatusCode::kUnavailable;
  return MakeStatus(code, "{} {}: {}", flag, path, strerror(error));
}

absl::StatusOr<std::string> ReadSmallFile(std::string_view flag,
                                          const std::string& path,
                                          size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CannotRead(flag, path, errno);
  std::string text(limit + 1, '\0');
  size_t size = 0;
  ssize_t bytes = 1;
  while (size < text.size() && bytes != 0) {
    bytes = read(fd, text.data() + size, text.size() - size);
    if (bytes < 0 && errno != EINTR) {
      const int error = errno;
      close(fd);
      return CannotRead(flag, path, error);
    }
    if (bytes > 0) size += static_cast<size_t>(bytes);
  }
  close(fd);
  if (size == 0 || size > limit)
    return InvalidArgument("{} {}: {}: want 1 to {} bytes", flag, path,
                           size == 0 ? "it is empty" : "it is larger", limit);
  text.resize(size);
  return text;
}

// A secret that is readable by its group is intended: Kubernetes mounts it so.
void WarnOfReaders(std::string_view event, const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || (info.st_mode & S_IROTH) == 0) return;
  LOG_WARN(
      "{} path={} mode={:o} note=\"every user of this machine can read it: "
      "chmod 600\"",
      event, path, info.st_mode & 0777);
}

}  // namespace

absl::StatusOr<std::string> ReadAccessToken(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadSmallFile("--access-token-file", path, kMaxToken));
  ASSIGN_OR_RETURN(
      std::string token,
      TokenIn(fmt::format("--access-token-file {}", path), text, kMinOwnToken));
  WarnOfReaders("access.token_readable", path);
  return token;
}

absl::Status RefuseOtherTokens(const char* leat_token) {
  if (leat_token == nullptr || *leat_token == '\0') return absl::OkStatus();
  return InvalidArgument(
      "LEAT_TOKEN is set, and is not read: want LEAT_ACCESS_TOKEN for the "
      "access token, and LEAT_TOKEN unset");
}

namespace {

absl::StatusOr<std::string> FileOf(const std::string& ca) {
  const char* const variable = std::getenv("SSL_CERT_FILE");
  absl::StatusOr<std::string> path =
      RootsFile(ca, variable == nullptr ? "" : variable,
                [](const char* path) { return access(path, F_OK) == 0; });
  if (!path.ok()) return Annotate(path.status(), "--tls-ca " + ca);
  return path;
}

}  // namespace

std::string CaFileOf(const TlsFiles& files) {
  return FileOf(files.ca).value_or("");
}

absl::Status ReadTls(const TlsFiles& files, Security* security) {
  Security read;
  ASSIGN_OR_RETURN(const std::string ca, FileOf(files.ca));
  const auto get = [](std::string_view flag, const std::string& path,
                      std::string* text) -> absl::Status {
    if (path.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(*text, ReadSmallFile(flag, path, kMaxPem));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(get("--tls-cert", files.cert, &read.cert_pem));
  RETURN_IF_ERROR(get("--tls-key", files.key, &read.key_pem));
  RETURN_IF_ERROR(get("--tls-ca", ca, &read.ca_pem));
  if (!files.key.empty()) WarnOfReaders("tls.key_readable", files.key);
  security->cert_pem = std::move(read.cert_pem);
  security->key_pem = std::move(read.key_pem);
  security->ca_pem = std::move(read.ca_pem);
  security->system_roots = files.ca == kSystemRoots;
  security->cert_file = files.cert;
  security->key_file = files.key;
  security->ca_file = ca;
  return absl::OkStatus();
}

}  // namespace leat::rpc
