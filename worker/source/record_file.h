// SPDX-License-Identifier: Apache-2.0
//
// Files with many records: their entries in indexes, and a record's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

using OpenedFile = std::shared_ptr<const StorageFile>;

// Returns the entry in an index. `uri` is what was opened, since names are
// redacted.
stored::v1::RecordFile RecordFileOf(std::string_view uri,
                                    const StorageFile& file);

// Opens the file that an index names. kFailedPrecondition: it changed since
// (names both). Of a local file only the size is compared, as hosts may have
// copies with other times. kDataLoss: no name, or a size that contradicts its
// identity.
absl::StatusOr<OpenedFile> OpenRecordFile(const stored::v1::RecordFile& record,
                                          const SourceLimits& limits);

// Adds name, size and identity.
void HashRecordFile(const stored::v1::RecordFile& record, Sha256* hash);

// Allocates memory for a sample's bytes, uninitialised.
using SampleBytes = std::shared_ptr<std::byte[]>;
SampleBytes NewSampleBytes(uint64_t bytes);

// Returns the offset in a sample's memory where an int32 follows `bytes` bytes.
constexpr uint64_t LabelPlace(uint64_t bytes) { return (bytes + 3) & ~3ull; }

// Returns the last part of a path or URI, for people; never empty.
std::string NameOf(std::string_view uri);

// kCancelled: `limits.cancelled` is true; names `what`.
absl::Status CheckCancelled(const SourceLimits& limits, std::string_view what);

// Fills the fields that follow from the number of samples. kResourceExhausted:
// over max_files records, or the blob over max_index_bytes. kNotFound: no
// samples. All name `name`.
absl::Status FinishIndex(std::string_view name, uint64_t samples,
                         const SourceLimits& limits, BuiltIndex* index);

}  // namespace leat::worker
