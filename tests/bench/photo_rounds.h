// SPDX-License-Identifier: Apache-2.0
//
// Shared by programs that decode the photos of a folder on one thread and print
// medians of rounds.
#pragma once

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace leat {

// Returns the processor time of this thread, so that other programs do not
// count.
inline double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

inline std::string ReadPhoto(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

// Reads all files under the folder, in the order of their names; prints an
// error if there is none.
inline std::vector<std::string> ReadPhotos(const char* folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(folder, error), end;
  for (; !error && entries != end; entries.increment(error))
    if (entries->is_regular_file()) paths.push_back(entries->path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> photos;
  photos.reserve(paths.size());
  for (const auto& path : paths) photos.push_back(ReadPhoto(path));
  if (error)
    std::fprintf(stderr, "%s: %s\n", folder, error.message().c_str());
  else if (photos.empty())
    std::fprintf(stderr, "no files under %s\n", folder);
  return photos;
}

// REQUIRES: there is a value.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace leat
