// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an LMDB data file: its values lie within it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/memory_file.h"
#include "worker/source/lmdb_walker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const leat::worker::MemoryFile file(
      std::string(reinterpret_cast<const char*>(data), size));
  const auto listing = leat::worker::ListLmdb(file, {});
  if (!listing.ok()) return 0;
  for (const leat::worker::LmdbValue& value : listing->values)
    if (value.offset > size || value.bytes > size - value.offset) abort();
  return 0;
}
