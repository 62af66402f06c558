// SPDX-License-Identifier: Apache-2.0
//
// OpenDescriptors counts this process's descriptors of files below a folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace leat::worker {

inline size_t OpenDescriptors(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    // Another thread may close it meanwhile.
    std::error_code gone;
    const std::string path =
        std::filesystem::read_symlink(entry.path(), gone).string();
    if (path.starts_with(folder + "/")) ++count;
  }
  return count;
}

}  // namespace leat::worker
