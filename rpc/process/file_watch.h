// SPDX-License-Identifier: Apache-2.0
//
// FileWatch: says when a daemon's certificates, keys and tokens may have been
// replaced: written again, exchanged by a rename, or by a link (as Kubernetes
// exchanges its "..data"). A network's file system does not tell of other
// machines' changes; SIGHUP is for those.
//
// Thread-compatible.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace leat::rpc {

class FileWatch {
 public:
  // Watches the folders of these files; empty paths are none. What cannot be
  // watched is logged, and passed over.
  explicit FileWatch(const std::vector<std::string>& paths);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Readable when something in the folders has changed; -1: nothing is watched.
  int fd() const { return fd_; }
  // Whether one of the files may have changed since the last call.
  bool Changed();

 private:
  int fd_ = -1;
  std::set<std::string> names_;
};

}  // namespace leat::rpc
