// SPDX-License-Identifier: Apache-2.0
//
// An idx file, plain or gzipped: a file that passes the inspection loads.
#include <string>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/packed/packing.h"
#include "worker/source/arrays/idx_file.h"

namespace leat::worker::idx_fuzz {
namespace {

void Run(std::string_view bytes) {
  const MemoryFile file(bytes);
  const SourceLimits limits = {.max_unpacked_bytes = 16 << 20};
  const auto header = InspectIdx(file, limits);
  if (!header.ok() || header->payload_bytes() > limits.max_unpacked_bytes)
    return;
  fuzz::Require(LoadIdx(file, *header, limits).ok());
}

std::vector<std::string> Seeds() {
  const std::string images(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"
      "abcdefghijkl",
      28);
  const std::string labels("\0\0\x0c\x01\0\0\0\x02\0\0\0\x07\0\0\0\x09", 16);
  return {images, labels, Gzip(images), Gzip(labels) + "more",
          std::string("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0", 12)};
}

const fuzz::Target kTarget(
    {.name = "idx", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::worker::idx_fuzz
