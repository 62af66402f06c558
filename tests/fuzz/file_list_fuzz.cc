// SPDX-License-Identifier: Apache-2.0
//
// The text of a file list: names and labels are within bounds, and writing them
// again gives the same list.
#include "fmt/format.h"
#include "tests/fuzz/target.h"
#include "worker/source/images/file_list.h"

namespace leat::worker::file_list_fuzz {
namespace {

constexpr uint64_t kMaxFiles = 1000;

void Run(std::string_view text) {
  const auto files = ParseFileList(text, kMaxFiles);
  if (!files.ok()) return;
  fuzz::Require(files->size() <= kMaxFiles);
  std::string again;
  for (const LabelledFile& file : *files) {
    fuzz::Require(!file.name.empty() && file.label >= 0);
    again += fmt::format("{} {}\n", file.name, file.label);
  }
  const auto same = ParseFileList(again, kMaxFiles);
  fuzz::Require(same.ok() && same->size() == files->size());
  for (size_t i = 0; i < files->size(); ++i)
    fuzz::Require((*same)[i].name == (*files)[i].name &&
                  (*same)[i].label == (*files)[i].label);
}

std::vector<std::string> Seeds() {
  return {"a.jpg 0\nb c.jpg\t7\r\n\n", "  x 2147483647", "s3://b/k 1\n \v\f\n",
          "name -1\n"};
}

const fuzz::Target kTarget(
    {.name = "file_list", .run = Run, .seeds = Seeds, .runs = 5000});

}  // namespace
}  // namespace leat::worker::file_list_fuzz
