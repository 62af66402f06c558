// SPDX-License-Identifier: Apache-2.0
//
// leat_fuzz_seeds DIRECTORY: writes small image files of every kind there.
#include <cstdio>
#include <fstream>

#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  auto files = leat::testing::SmallImageFiles();
  files.emplace_back("baseline.jpg",
                     leat::testing::MakeJpeg({.width = 19, .height = 17}));
  files.emplace_back(
      "progressive.jpg",
      leat::testing::MakeJpeg(
          {.width = 19, .height = 17, .progressive = true, .orientation = 6}));
  for (const auto& [name, bytes] : files) {
    std::ofstream file(std::string(argv[1]) + "/" + name, std::ios::binary);
    if (!(file << bytes).flush()) {
      fprintf(stderr, "%s/%s: not written\n", argv[1], name.c_str());
      return 1;
    }
  }
  return 0;
}
