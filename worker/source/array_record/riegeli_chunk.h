// SPDX-License-Identifier: Apache-2.0
//
// Chunks of Riegeli/records files, as ArrayRecord uses them.
//
// A file consists of blocks of 64 KiB. Each block begins with a header of 24
// bytes that is not part of the chunks that cross it. A chunk is a header of 40
// bytes
//   u64 hash of the rest | u64 data bytes | u64 hash of the data
//   u8 type, u56 records | u64 bytes of all records
// and its data; for type 'r':
//   u8 compression | varint length | sizes of records | records
// where both, if compressed, are preceded by their uncompressed size. Hashes
// are HighwayHash-64 and are checked, except those of block headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

inline constexpr uint64_t kRiegeliBlock = 64 << 10;

struct RiegeliRecords {
  std::vector<std::byte> values;
  std::vector<uint64_t> ends;  // of records in values
  uint64_t bytes() const { return values.size() + 8 * ends.size(); }
  std::span<const std::byte> operator[](size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::span(values).subspan(begin, ends[i] - begin);
  }
};

// Returns the records of the chunk at `begin` of the file. kDataLoss:
// malformed, or a wrong hash; kUnimplemented: a chunk that is transposed or
// compressed by Snappy; kResourceExhausted: over `max_bytes` stored or
// unpacked. Messages do not name the file; errors of reading are those of
// StorageFile::ReadAt.
absl::StatusOr<RiegeliRecords> ReadRiegeliChunk(const StorageFile& file,
                                                uint64_t begin,
                                                uint64_t max_bytes);

}  // namespace leat::worker
