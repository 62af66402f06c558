// SPDX-License-Identifier: Apache-2.0
//
// FileWatch reports when a daemon's certificates, keys and tokens may have been
// replaced: written again, exchanged by a rename, or by a link (as Kubernetes
// exchanges its "..data"). A network file system does not report changes by
// other machines; SIGHUP is for those.
//
// Thread-compatible.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace leat::rpc {

class FileWatch {
 public:
  // Watches the folders of these files; empty paths are ignored. A folder that
  // cannot be watched is logged, and skipped.
  explicit FileWatch(const std::vector<std::string>& paths);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Readable when something in the folders has changed; -1: no folder is
  // watched.
  int fd() const { return fd_; }
  // Returns whether one of the files may have changed since the last call.
  bool Changed();

 private:
  int fd_ = -1;
  std::set<std::string> names_;
};

}  // namespace leat::rpc
