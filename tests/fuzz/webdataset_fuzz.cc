// SPDX-License-Identifier: Apache-2.0
//
// A tar archive; also with corrected sums of its blocks, otherwise only the
// first headers would be reached.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/tar_places.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/webdataset/tar_maker.h"

namespace leat::worker::webdataset_fuzz {
namespace {

constexpr uint64_t kMaxSamples = 10'000;

void AsArchive(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const auto missing : {MissingComponent::kError, MissingComponent::kSkip,
                             MissingComponent::kEmpty}) {
    const auto places =
        SamplesOfTar(file, TarExtensions(), missing, kMaxSamples, nullptr);
    if (places.ok()) CheckPlaces(*places, file.size());
  }
}

std::string WithGoodSums(std::string bytes) {
  for (size_t at = 0; at + kTarBlock <= bytes.size(); at += kTarBlock) {
    std::string block = bytes.substr(at, kTarBlock);
    if (std::count(block.begin(), block.end(), '\0') > 500) continue;
    SealTarHeader(&block);
    bytes.replace(at, kTarBlock, block);
  }
  return bytes;
}

void Run(std::string_view bytes) {
  AsArchive(bytes);
  AsArchive(WithGoodSums(std::string(bytes)));
}

std::vector<std::string> Seeds() {
  const std::string long_name(150, 'n');
  return {
      TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1") +
          TarMemberOf("0.a.b", "") + TarEnd(),
      TarMemberOf("d/0.png", "abc", {.prefix = "p"}) +
          TarMemberOf("d/0.cls", "1") + TarMemberOf("link", "", {.type = '2'}),
      LongName(long_name + ".jpg") + TarMemberOf("short", "abc") + TarEnd(),
      Pax(PaxRecord("path", long_name + ".jpg") + PaxRecord("size", "3") +
          PaxRecord("mtime", "1.5")) +
          TarMemberOf("x", "abc") + Pax(PaxRecord("comment", "c"), 'g') +
          TarMemberOf("1.cls", "5"),
      TarMemberOf("0.jpg", "abc",
                  {.magic = std::string(8, '\0'),
                   .size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12)})};
}

const fuzz::Target kTarget(
    {.name = "webdataset", .run = Run, .seeds = Seeds, .runs = 500});

}  // namespace
}  // namespace leat::worker::webdataset_fuzz
