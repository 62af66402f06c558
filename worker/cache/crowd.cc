// SPDX-License-Identifier: Apache-2.0
//
// For example in "0.20 0.18 0.12 3/80 11206", 3 of 80 threads run or want to
// run.
#include "worker/cache/crowd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace leat::worker {

Crowd::Crowd()
    : fd_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
      processors_(
          static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)))) {}

Crowd::~Crowd() {
  if (fd_ >= 0) close(fd_);
}

std::optional<size_t> Crowd::RunnableOf(std::string_view loadavg) {
  for (int mean = 0; mean < 3; ++mean) {
    const size_t space = loadavg.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    loadavg.remove_prefix(space + 1);
  }
  size_t runnable = 0;
  const char* const end = loadavg.data() + loadavg.size();
  const auto [rest, error] = std::from_chars(loadavg.data(), end, runnable);
  if (error != std::errc() || rest == end || *rest != '/') return std::nullopt;
  return runnable;
}

bool Crowd::IsThere(size_t ours) const {
  char text[128];
  const ssize_t size = fd_ < 0 ? -1 : pread(fd_, text, sizeof text, 0);
  if (size <= 0) return false;
  const std::optional<size_t> runnable =
      RunnableOf({text, static_cast<size_t>(size)});
  return runnable && *runnable >= ours + processors_;
}

}  // namespace leat::worker
