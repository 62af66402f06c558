// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/file_watch.h"

#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/log.h"

namespace leat::rpc {
namespace {

constexpr uint32_t kChanges =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB;
constexpr char kKubernetesLink[] = "..data";

}  // namespace

FileWatch::FileWatch(const std::vector<std::string>& paths) {
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const size_t slash = path.rfind('/');
    folders.insert(slash == std::string::npos ? "."
                   : slash == 0               ? "/"
                                              : path.substr(0, slash));
    names_.insert(path.substr(slash + 1));  // npos + 1 is 0
  }
  if (folders.empty()) return;
  names_.insert(kKubernetesLink);
  fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  for (const std::string& folder : folders)
    if (fd_ < 0 || inotify_add_watch(fd_, folder.c_str(), kChanges) < 0)
      LOG_WARN(
          "files.not_watched folder={} error=\"{}\" note=\"SIGHUP reads "
          "certificates and tokens again\"",
          folder, strerror(errno));
}

FileWatch::~FileWatch() {
  if (fd_ >= 0) close(fd_);
}

bool FileWatch::Changed() {
  bool changed = false;
  alignas(inotify_event) std::array<char, 8192> buffer;
  while (true) {
    const ssize_t size = read(fd_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return changed;
    for (size_t at = 0; at < static_cast<size_t>(size);) {
      inotify_event event;
      memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      changed |= (event.mask & IN_Q_OVERFLOW) != 0 ||
                 (event.len > 0 && names_.contains(name));
      at += sizeof event + event.len;
    }
  }
}

}  // namespace leat::rpc
