// SPDX-License-Identifier: Apache-2.0
//
// Counts this process's descriptors, and its mappings of memfds.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

namespace leat {

inline size_t CountOpenFiles() {
  size_t count = 0;
  DIR* const directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// Counts mappings whose name in /proc/self/maps contains `name`.
inline size_t CountMappings(std::string_view name) {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) ++count;
  return count;
}

}  // namespace leat
