// SPDX-License-Identifier: Apache-2.0
//
// Bytes as a tar archive (also with the sums of its blocks put right, or none
// but the first headers would be reached), and as DALI's index of an archive.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/worker/tar_maker.h"
#include "worker/source/webdataset_samples.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxSamples = 10'000;
const std::vector<std::string> kExt = {"jpg;png", "cls", "a.b"};

void CheckPlaces(const ComponentPlaces& places, uint64_t bytes) {
  if (places.blocks.size() != places.sizes.size() ||
      places.blocks.size() % kExt.size() != 0)
    abort();
  for (size_t i = 0; i < places.blocks.size(); ++i)
    if (places.blocks[i] * kTarBlock + places.sizes[i] > bytes) abort();
}

void AsArchive(std::string bytes) {
  const MemoryFile file(std::move(bytes));
  for (const auto missing : {MissingComponent::kError, MissingComponent::kSkip,
                             MissingComponent::kEmpty}) {
    const auto places = SamplesOfTar(file, kExt, missing, kMaxSamples, nullptr);
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

void AsIndex(std::string_view text) {
  static const MemoryFile& file = *new MemoryFile(
      TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1") + TarEnd());
  const auto places = SamplesOfDaliIndex(text, file, kExt,
                                         MissingComponent::kEmpty, kMaxSamples);
  if (places.ok()) CheckPlaces(*places, file.size());
}

}  // namespace
}  // namespace leat::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  leat::worker::AsArchive(bytes);
  leat::worker::AsArchive(leat::worker::WithGoodSums(bytes));
  leat::worker::AsIndex(bytes);
  return 0;
}
