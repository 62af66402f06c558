// SPDX-License-Identifier: Apache-2.0
//
// TFRecord's framing (tensorflow/core/lib/io/record_writer.h). A file is
// records without anything between them:
//
//   uint64  length of the data
//   uint32  masked CRC-32C of those eight bytes
//   bytes   data
//   uint32  masked CRC-32C of the data
//
// Little-endian. Masked: rotated right by 15 bits, plus 0xa282ead8 (mod 2^32),
// so that a sum of data that holds sums is a good one too.
//
// DALI's index (its tool tfrecord2idx) is text: a line "offset size" for each
// record, both in bytes, size with the framing.
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

// Bytes of the record, framing included, that begins with `header`; `left`: of
// the file, from there. kDataLoss: its sum is wrong, or it reaches over the
// end. kUnimplemented: over 4 GiB.
absl::StatusOr<uint32_t> TfrecordSize(
    std::span<const std::byte, kTfrecordHeader> header, uint64_t left);

// The data of a whole record; refers to it. kDataLoss: the length is not that
// of the record, or a sum is wrong.
absl::StatusOr<std::span<const std::byte>> TfrecordData(
    std::span<const std::byte> record);

// The sizes of all records of a file, by its headers. kDataLoss, naming file,
// record and offset: as TfrecordSize. kResourceExhausted: more than
// `max_records`. kCancelled.
absl::StatusOr<std::vector<uint32_t>> WalkTfrecord(
    const StoredFile& file, uint64_t max_records,
    const std::atomic<bool>* cancelled);

// The same by an index of DALI's. kFailedPrecondition: it is not of that file,
// as its size, its first and last and some more headers show.
// kInvalidArgument: no such index; names the line.
absl::StatusOr<std::vector<uint32_t>> SizesFromDaliIndex(std::string_view text,
                                                         const StoredFile& file,
                                                         uint64_t max_records);

}  // namespace leat::worker
