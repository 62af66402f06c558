// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/status.h"

namespace leat::cli {

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most) {
  constexpr size_t kPiece = 64 << 10;
  // The call does not wait for a pipe's writer; reads wait for its bytes.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) fcntl(fd, F_SETFL, 0);
  std::string text;
  ssize_t got = fd < 0 ? -1 : 1;
  while (got > 0 && text.size() <= most) {
    const size_t have = text.size();
    text.resize(have + std::min(kPiece, most + 1 - have));
    do {
      got = read(fd, text.data() + have, text.size() - have);
    } while (got < 0 && errno == EINTR);
    text.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  const int error = errno;
  struct stat info {};
  const bool no_writer = text.empty() && fd >= 0 && fstat(fd, &info) == 0 &&
                         S_ISFIFO(info.st_mode);
  if (fd >= 0) close(fd);
  if (no_writer)
    return FailedPrecondition("{}: a named pipe without a writer, want a file",
                              path);
  if (got >= 0) return text;
  return FailedPrecondition("{}: cannot be read: {}", path,
                            std::strerror(error));
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool written = fd >= 0;
  while (written && !bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    written = put >= 0;
    if (written) bytes.remove_prefix(static_cast<size_t>(put));
  }
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written) return absl::OkStatus();
  return FailedPrecondition("{}: cannot be written: {}", path,
                            std::strerror(error));
}

}  // namespace leat::cli
