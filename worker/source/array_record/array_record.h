// SPDX-License-Identifier: Apache-2.0
//
// ArrayRecord files: Riegeli/records with an index of their chunks.
//
// The last block of 64 KiB holds a record with the footer's place; the footer
// is a chunk whose first record says what was written and whose others are, for
// each chunk, its place and number of records. All chunks but the last have the
// same number ("group_size"). A record is read with its chunk; of groups, the
// chunks that were last read are kept (SourceLimits::max_unpacked_bytes).
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
  uint64_t group = 0;             // records in each chunk but the last
  std::vector<uint64_t> offsets;  // of chunks, and of their end
};

// kDataLoss: not written to its end, or malformed; names the file.
absl::StatusOr<ArrayRecordFooter> ReadArrayRecordFooter(const StoredFile& file,
                                                        uint64_t max_bytes);

// As SourceFormat. kNotFound: no records in all files.
absl::StatusOr<BuiltIndex> BuildArrayRecordIndex(const Node& reader,
                                                 const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenArrayRecord(
    const Node& reader, std::string_view blob, const SourceLimits& limits);

}  // namespace leat::worker
