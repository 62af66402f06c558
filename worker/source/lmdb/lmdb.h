// SPDX-License-Identifier: Apache-2.0
//
// readers.caffe and readers.caffe2: the common parts of listing and reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/source/lmdb/caffe_record.h"
#include "worker/source/lmdb/walker.h"
#include "worker/source/record_file.h"
#include "worker/source/source.h"

namespace leat::worker {

inline constexpr size_t kMaxLmdbFiles = 4096;

struct LmdbKind {
  std::string_view op;
  absl::StatusOr<CaffeRecord> (*parse)(std::span<const std::byte> value);
};

// The memory that a value is read into, with room for its label after it.
struct LmdbBytes {
  SampleBytes memory;
  std::span<const std::byte> bytes;
  std::byte* label() const { return memory.get() + LabelPlace(bytes.size()); }
};

LmdbBytes NewLmdbBytes(const LmdbValue& where);

absl::Status LmdbValueTooLarge(std::string_view file, const LmdbValue& where,
                               const SourceLimits& limits);

// kResourceExhausted: over max_file_bytes.
absl::StatusOr<LmdbBytes> ReadLmdbValue(const StorageFile& file,
                                        const LmdbValue& where,
                                        const SourceLimits& limits);

ValueType CaffeImageType(const CaffeRecord& record);

Digest LmdbFingerprint(const LmdbKind& kind,
                       const stored::v1::LmdbIndex& index);

absl::StatusOr<BuiltIndex> BuildLmdbIndex(const LmdbKind& kind,
                                          const Node& reader,
                                          const SourceLimits& limits);

}  // namespace leat::worker
