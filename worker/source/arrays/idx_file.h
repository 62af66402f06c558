// SPDX-License-Identifier: Apache-2.0
//
// idx files, like MNIST's: two zero bytes, a type, the number of axes, their
// sizes, then the elements; all numbers are big-endian. Plain or gzipped.
//
//   00 00 08 03  0000ea60 0000001c 0000001c  ...   60,000 of 28 x 28 uint8
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/source/record_file.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

inline constexpr size_t kMaxIdxAxes = 5;  // includes the axis of records

struct IdxHeader {
  uint8_t type = 0;             // as in the file: 8, 12 or 13
  std::vector<uint32_t> sizes;  // records first

  // REQUIRES (all): CheckIdxHeader is OK.
  DType dtype() const;
  uint64_t records() const { return sizes.front(); }
  uint64_t record_bytes() const;
  uint64_t payload_bytes() const { return records() * record_bytes(); }
  uint64_t header_bytes() const { return 4 + 4 * sizes.size(); }
  // Returns the type of a record; height and width become (h, w, 1).
  ValueType record_type() const;
  friend bool operator==(const IdxHeader&, const IdxHeader&) = default;
};

// kInvalidArgument: a type or a number of axes that is not supported.
// kDataLoss: sizes with no record or with more than kMaxRowBytes.
absl::Status CheckIdxHeader(const IdxHeader& header, std::string_view name);

// `head`: the file's first bytes, kMaxIdxHead of them if it has that many.
// kDataLoss: not an idx file. Others: as CheckIdxHeader, which has passed.
inline constexpr size_t kMaxIdxHead = 4 + 4 * kMaxIdxAxes;
absl::StatusOr<IdxHeader> ParseIdxHeader(std::span<const std::byte> head,
                                         std::string_view name);

// Returns the header of a file whose length matches it exactly; a gzipped file
// is decompressed to check this. kResourceExhausted: that exceeds
// max_unpacked_bytes. kDataLoss: of another length, or damaged.
absl::StatusOr<IdxHeader> InspectIdx(const StorageFile& file,
                                     const SourceLimits& limits);

// Returns the elements, little-endian. kDataLoss: it has another header, or is
// damaged. kResourceExhausted: over max_unpacked_bytes.
absl::StatusOr<SampleBytes> LoadIdx(const StorageFile& file,
                                    const IdxHeader& header,
                                    const SourceLimits& limits);

// Swaps the bytes of the elements, because idx is big-endian.
void SwapElements(std::span<std::byte> elements, size_t element_bytes);

}  // namespace leat::worker
