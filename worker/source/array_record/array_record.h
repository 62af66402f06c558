// SPDX-License-Identifier: Apache-2.0
//
// ArrayRecord files: Riegeli/records with an index of their chunks.
//
// The last block of 64 KiB holds a record with the footer's position. The
// footer is a chunk: its first record describes what was written, and each
// other record has the position and the number of records of one chunk. All
// chunks but the last have the same number ("group_size"). A record is read
// with its chunk; of chunks with several records, the last used are kept
// (SourceLimits::max_unpacked_bytes).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

struct ArrayRecordFooter {
  uint64_t records = 0;
  uint64_t group = 0;             // records per chunk, except the last
  std::vector<uint64_t> offsets;  // of chunks, and of the end of the last
};

// kDataLoss: not written to its end, or malformed; names the file.
absl::StatusOr<ArrayRecordFooter> ReadArrayRecordFooter(const StorageFile& file,
                                                        uint64_t max_bytes);

// Have the contracts of SourceFormat. kNotFound: no records in all files.
// kResourceExhausted: over max_files records.
absl::StatusOr<BuiltIndex> BuildArrayRecordIndex(const Node& reader,
                                                 const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenArrayRecord(
    const Node& reader, std::string_view blob, const SourceLimits& limits);

}  // namespace leat::worker
