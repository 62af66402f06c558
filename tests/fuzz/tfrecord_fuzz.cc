// SPDX-License-Identifier: Apache-2.0
//
// A TFRecord file, alone and after a valid record.
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "worker/source/tfrecord/framing.h"

namespace leat::worker::tfrecord_fuzz {
namespace {

constexpr uint64_t kMaxRecords = 10'000;

void AsFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto sizes = WalkTfrecord(file, kMaxRecords, nullptr);
  if (!sizes.ok()) return;
  const auto all = std::as_bytes(std::span(bytes.data(), bytes.size()));
  uint64_t offset = 0;
  for (const uint32_t size : *sizes) {
    (void)TfrecordData(all.subspan(offset, size));
    offset += size;
  }
  fuzz::Require(offset == bytes.size());
}

void Run(std::string_view text) {
  const std::string bytes(text);
  AsFile(bytes);
  AsFile(TfrecordOf(bytes) + bytes);
}

std::vector<std::string> Seeds() {
  return {TfrecordOf(""), TfrecordOf("abc") + TfrecordOf("de"),
          TfrecordOf("abc").substr(0, 17)};
}

const fuzz::Target kTarget(
    {.name = "tfrecord", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::worker::tfrecord_fuzz
