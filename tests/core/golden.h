// SPDX-License-Identifier: Apache-2.0
//
// Reads the golden files of tests/golden/, which generate.py there computes.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leat {

// Returns the lines of a golden file as words, without comments. Fails the test
// if there are none.
inline std::vector<std::vector<std::string>> GoldenLines(
    const std::string& name) {
  const std::string path =
      std::string(LEAT_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

}  // namespace leat
