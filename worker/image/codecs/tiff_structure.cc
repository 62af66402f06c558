// SPDX-License-Identifier: Apache-2.0
//
// A TIFF consists of a header (byte order, 42 or, for a BigTIFF, 43, position
// of the first directory) and directories: a count, then entries of a tag, a
// type, a count, and a value or the position of its bytes.
#include "worker/image/codecs/tiff_structure.h"

#include <algorithm>
#include <iterator>

#include "core/status.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kMaxTiffTags = 512;
// How often tags may name a file's bytes: the tags of some writers overlap.
constexpr uint64_t kMostNamed = 2;
// Beginning a row, or a strip or tile, costs as much as this many bytes.
constexpr uint64_t kLeastRowBytes = 64, kLeastPartBytes = 4096;
constexpr uint64_t kTypeBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                   8, 4, 8, 4, 0, 0, 8, 8, 8};

uint64_t NumberAt(Bytes file, size_t at, int size, bool big_endian) {
  if (size == 8) {
    const uint64_t first = NumberAt(file, at, 4, big_endian);
    const uint64_t second = NumberAt(file, at + 4, 4, big_endian);
    return big_endian ? first << 32 | second : second << 32 | first;
  }
  return big_endian ? BigEndian(file, at, size) : LittleEndian(file, at, size);
}

}  // namespace

absl::Status CheckTiffDirectory(Bytes file) {
  if (file.size() < 16) return absl::OkStatus();
  const bool big_endian = BytesAre(file, 0, "MM");
  const bool big = NumberAt(file, 2, 2, big_endian) == 43;
  const int word = big ? 8 : 4;  // of counts and offsets
  const size_t entry_bytes = big ? 20 : 12, count_bytes = big ? 8 : 2;
  const uint64_t at = NumberAt(file, big ? 8 : 4, word, big_endian);
  if (at > file.size() || file.size() - at < count_bytes)
    return absl::OkStatus();
  const uint64_t count =
      NumberAt(file, at, static_cast<int>(count_bytes), big_endian);
  if (count > kMaxTiffTags)
    return DataLoss("damaged TIFF: a directory of {} tags, want at most {}",
                    count, kMaxTiffTags);
  const uint64_t first = at + count_bytes;
  if (file.size() - first < count * entry_bytes) return absl::OkStatus();
  uint64_t named = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t entry = first + i * entry_bytes;
    const uint64_t type = NumberAt(file, entry + 2, 2, big_endian);
    const uint64_t values = NumberAt(file, entry + 4, word, big_endian);
    const uint64_t each = type < std::size(kTypeBytes) ? kTypeBytes[type] : 0;
    // Bytes outside the file are not read.
    if (each == 0 || values > file.size() / each) continue;
    named += values * each;
  }
  if (named <= kMostNamed * file.size()) return absl::OkStatus();
  return DataLoss("damaged TIFF: its tags name {} bytes, of a file of {}",
                  named, file.size());
}

absl::Status CheckTiffWork(uint64_t count, uint64_t rows, uint64_t row_bytes,
                           const ImageLimits& limits) {
  const uint64_t most = limits.max_unpacked_bytes;
  const uint64_t row = std::max(row_bytes, kLeastRowBytes);
  // No product exceeds the square of the limit.
  const uint64_t part =
      rows > most / row ? most : std::max(rows * row, kLeastPartBytes);
  if (count == 0 || (part <= most / count && rows <= most / row))
    return absl::OkStatus();
  return ResourceExhausted(
      "TIFF has {} strips or tiles of {} rows of {} bytes: more than the "
      "limit of {} bytes of work",
      count, rows, row_bytes, most);
}

absl::Status CheckTiffJpeg(Bytes stream) {
  uint32_t components = 0;
  for (size_t at = 2; at + 4 <= stream.size();) {
    const uint32_t prefix = BigEndian(stream, at, 1);
    const uint32_t marker = BigEndian(stream, at + 1, 1);
    if (prefix != 0xff || marker == 0)
      return DataLoss(
          "damaged TIFF: a JPEG has the bytes {:02x} {:02x} where a marker "
          "should be",
          prefix, marker);
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd9)) {
      at += 2;
      continue;
    }
    const size_t length = BigEndian(stream, at + 2, 2);
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
                       marker != 0xc8 && marker != 0xcc;
    if (frame && at + 10 <= stream.size()) {
      components = BigEndian(stream, at + 9, 1);
      if ((marker & 3) == 2)
        return InvalidArgument("TIFF with a progressive JPEG is not supported");
    }
    if (marker == 0xda) {
      if (at + 5 <= stream.size() && BigEndian(stream, at + 4, 1) < components)
        return InvalidArgument(
            "TIFF with a JPEG of several scans is not supported");
      return absl::OkStatus();
    }
    at += 2 + std::max<size_t>(length, 2);
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
