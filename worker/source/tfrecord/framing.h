// SPDX-License-Identifier: Apache-2.0
//
// TFRecord's framing (tensorflow/core/lib/io/record_writer.h). A file consists
// of records without gaps:
//
//   uint64  length of the data
//   uint32  masked CRC-32C of those eight bytes
//   bytes   data
//   uint32  masked CRC-32C of the data
//
// Little-endian. Masked: rotated right by 15 bits, plus 0xa282ead8 (mod 2^32),
// so that the checksum of data that contains checksums is a good one too.
//
// DALI's index (of its tool tfrecord2idx) is text: a line "offset size" for
// each record, both in bytes, where size includes the framing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

inline constexpr uint64_t kTfrecordHeader = 12;
inline constexpr uint64_t kTfrecordFraming = 16;

uint32_t MaskedCrc32c(std::span<const std::byte> bytes);

// Returns the bytes, including framing, of the record that begins with
// `header`; `left`: bytes of the file from there. kDataLoss: its checksum is
// wrong, or it extends beyond the end. kUnimplemented: over 4 GiB.
absl::StatusOr<uint32_t> TfrecordSize(
    std::span<const std::byte, kTfrecordHeader> header, uint64_t left);

// Returns the data of a whole record, without a copy. kDataLoss: the length is
// not that of the record, or a checksum is wrong.
absl::StatusOr<std::span<const std::byte>> TfrecordData(
    std::span<const std::byte> record);

// Returns the sizes of all records of a file, from its headers. kDataLoss,
// naming file, record and offset: as TfrecordSize. kResourceExhausted: more
// than `max_records`. kCancelled.
absl::StatusOr<std::vector<uint32_t>> WalkTfrecord(
    const StorageFile& file, uint64_t max_records,
    const std::atomic<bool>* cancelled);

// Does the same by an index of DALI's. kFailedPrecondition: it is not of that
// file, according to its size, and its first, last and some more headers.
// kInvalidArgument: not such an index; names the line.
absl::StatusOr<std::vector<uint32_t>> SizesFromDaliIndex(
    std::string_view text, const StorageFile& file, uint64_t max_records);

}  // namespace leat::worker
