// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an idx file, plain or gzipped: what passes the inspection loads.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/memory_file.h"
#include "worker/source/idx_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const leat::worker::MemoryFile file(
      std::string(reinterpret_cast<const char*>(data), size));
  leat::worker::SourceLimits limits;
  limits.max_unpacked_bytes = 16 << 20;
  const auto header = leat::worker::InspectIdx(file, limits);
  if (!header.ok() || header->payload_bytes() > limits.max_unpacked_bytes)
    return 0;
  if (!leat::worker::LoadIdx(file, *header, limits).ok()) abort();
  return 0;
}
