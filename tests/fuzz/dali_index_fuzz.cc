// SPDX-License-Identifier: Apache-2.0
//
// DALI's index of a TFRecord file, and that of a tar archive.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/tar_places.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/source/webdataset/tar_maker.h"

namespace leat::worker::dali_index_fuzz {
namespace {

constexpr uint64_t kMaxRecords = 10'000;

const std::vector<std::string>& Records() {
  static const std::vector<std::string>& records =
      *new std::vector<std::string>{TfrecordOf("abcd"), TfrecordOf(""),
                                    TfrecordOf("0123456789")};
  return records;
}

void Run(std::string_view text) {
  static const MemoryFile& records =
      *new MemoryFile(Records()[0] + Records()[1] + Records()[2]);
  const auto sizes = SizesFromDaliIndex(text, records, kMaxRecords);
  if (sizes.ok()) {
    uint64_t sum = 0;
    for (const uint32_t size : *sizes) sum += size;
    fuzz::Require(sum == records.size());
  }
  static const MemoryFile& archive = *new MemoryFile(
      TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1") + TarEnd());
  const auto places = SamplesOfDaliIndex(text, archive, TarExtensions(),
                                         MissingComponent::kEmpty, kMaxRecords);
  if (places.ok()) CheckPlaces(*places, archive.size());
}

std::vector<std::string> Seeds() {
  return {DaliIndexOf(Records()), "v1.2 1\njpg 512 3 0.jpg cls 1536 1 0.cls\n",
          "v1.1 1\njpg 512 3 cls 1536 1\n"};
}

const fuzz::Target kTarget(
    {.name = "dali_index", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::worker::dali_index_fuzz
