// SPDX-License-Identifier: Apache-2.0
//
// An LMDB data file: its values lie within it.
#include <string>

#include "tests/fuzz/lmdb_maker.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/lmdb/walker.h"

namespace leat::worker::lmdb_fuzz {
namespace {

void Run(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto listing = ListLmdb(file, {});
  if (!listing.ok()) return;
  for (const LmdbValue& value : listing->values)
    fuzz::Require(value.offset <= bytes.size() &&
                  value.bytes <= bytes.size() - value.offset);
}

std::vector<std::string> Seeds() {
  // One leaf; a value on its own pages; a branch above several leaves.
  return {LmdbOf({"a", "", "bcd"}), LmdbOf({std::string(5000, 'x'), "y"}),
          LmdbOf(std::vector<std::string>(12, std::string(700, 'z')))};
}

const fuzz::Target kTarget(
    {.name = "lmdb", .run = Run, .seeds = Seeds, .runs = 1000});

}  // namespace
}  // namespace leat::worker::lmdb_fuzz
