// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/status.h"
#include "server/state_directory.h"

namespace leat::server {
namespace {

constexpr size_t kMaxToken = 4096, kMaxPem = 1 << 20;

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  std::string text(limit + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t bytes = read(fd, text.data() + size, text.size() - size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      const int error = errno;
      close(fd);
      return ErrnoStatus(error, fmt::format("cannot read {}", path));
    }
    if (bytes == 0) break;
    size += static_cast<size_t>(bytes);
  }
  close(fd);
  if (size > limit)
    return InvalidArgument("{}: more than {} bytes", path, limit);
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(std::string token, ReadSmallFile(path, kMaxToken));
  while (!token.empty() &&
         (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  if (token.empty()) return InvalidArgument("{}: the token is empty", path);
  return token;
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  return ReadSmallFile(path, kMaxPem);
}

absl::Status Config::Validate() const {
  if (listen.empty())
    return InvalidArgument("--listen is empty: want HOST:PORT");
  RETURN_IF_ERROR(security.Validate());
  return coordinator.Validate();
}

std::string Config::ToString() const {
  const auto ms = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
        .count();
  };
  return fmt::format(
      "listen={} state={} token={} tls={} heartbeat_interval_ms={} "
      "lost_after_ms={} job_ttl_h={} cluster={}",
      listen, state_dir.empty() ? "memory" : state_dir,
      security.token.empty() ? "no" : "yes",
      security.cert_pem.empty() ? "no" : "yes",
      ms(coordinator.heartbeat_interval), ms(coordinator.membership.lost_after),
      ms(coordinator.job_ttl) / 3'600'000, coordinator.cluster);
}

}  // namespace leat::server
