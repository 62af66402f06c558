// SPDX-License-Identifier: Apache-2.0
#include "worker/source/array_record/riegeli_chunk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/status.h"
#include "worker/source/array_record/highway_hash.h"
#include "worker/source/packed/unpack.h"

namespace leat::worker {
namespace {

constexpr uint64_t kBlockHeader = 24;
constexpr uint64_t kChunkHeader = 40;
// The bytes "Riegeli/records\n", twice.
constexpr std::array<uint64_t, 4> kKey = {
    0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952,
    0x0a7364726f636572};

uint64_t U64(const std::byte* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Reads `into` from `*at` on without the headers of blocks, in one read of the
// file, and moves `*at` past it.
absl::Status ReadAcross(const StorageFile& file, uint64_t* at,
                        std::vector<std::byte>* into) {
  uint64_t physical = 0;
  const auto each_piece = [&](const auto& use) {
    uint64_t position = *at;
    physical = 0;
    for (uint64_t done = 0; done < into->size();) {
      if (position % kRiegeliBlock == 0) {
        position += kBlockHeader;
        physical += kBlockHeader;
      }
      const uint64_t piece = std::min(into->size() - done,
                                      kRiegeliBlock - position % kRiegeliBlock);
      use(physical, done, piece);
      position += piece;
      physical += piece;
      done += piece;
    }
  };
  each_piece([](uint64_t, uint64_t, uint64_t) {});
  if (*at > file.size() || physical > file.size() - *at)
    return DataLoss("a chunk at {} ends after the file's {} bytes", *at,
                    file.size());
  std::vector<std::byte> raw(physical);
  RETURN_IF_ERROR(file.ReadAt(*at, raw));
  each_piece([&](uint64_t from, uint64_t to, uint64_t size) {
    std::memcpy(into->data() + to, raw.data() + from, size);
  });
  *at += physical;
  return absl::OkStatus();
}

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> rest) : rest_(rest) {}

  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto each = static_cast<uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      if (shift == 63 && each > 1) break;
      value |= (each & 0x7f) << shift;
      if (each < 0x80) return value;
    }
    return DataLoss("a malformed number in a chunk");
  }
  absl::StatusOr<std::span<const std::byte>> Take(uint64_t size) {
    if (size > rest_.size())
      return DataLoss("a chunk's part of {} bytes, {} are left", size,
                      rest_.size());
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

absl::StatusOr<std::vector<std::byte>> Unpacked(
    Compression compression, std::span<const std::byte> stored,
    uint64_t max_bytes) {
  if (compression == Compression::kNone)
    return std::vector<std::byte>(stored.begin(), stored.end());
  Bytes in(stored);
  ASSIGN_OR_RETURN(const uint64_t size, in.Varint());
  if (size > max_bytes)
    return DataLoss("a chunk's part of {} bytes unpacked, want at most {}",
                    size, max_bytes);
  std::vector<std::byte> unpacked(size);
  RETURN_IF_ERROR(Unpack(compression, in.rest(), unpacked));
  return unpacked;
}

absl::StatusOr<Compression> CompressionOf(std::byte type) {
  switch (static_cast<char>(type)) {
    case '\0':
      return Compression::kNone;
    case 'z':
      return Compression::kZstd;
    case 'b':
      return Compression::kBrotli;
    case 's':
      return Unimplemented(
          "a chunk compressed by Snappy: want uncompressed, zstd or brotli");
    default:
      return DataLoss("a chunk of unknown compression {}",
                      static_cast<int>(type));
  }
}

absl::StatusOr<RiegeliRecords> Decode(std::span<const std::byte> data,
                                      uint64_t records, uint64_t bytes,
                                      uint64_t max_bytes) {
  if (data.empty()) return DataLoss("a chunk without data");
  ASSIGN_OR_RETURN(const Compression compression, CompressionOf(data[0]));
  Bytes in(data.subspan(1));
  ASSIGN_OR_RETURN(const uint64_t sizes_bytes, in.Varint());
  ASSIGN_OR_RETURN(const auto stored_sizes, in.Take(sizes_bytes));
  // A size takes 10 bytes at most, and one at least.
  ASSIGN_OR_RETURN(
      const std::vector<std::byte> sizes,
      Unpacked(compression, stored_sizes, std::min(10 * records, max_bytes)));
  if (records > sizes.size())
    return DataLoss("a chunk of {} records has {} bytes of sizes", records,
                    sizes.size());
  RiegeliRecords decoded;
  if (records > max_bytes / sizeof(decoded.ends[0]))
    return ResourceExhausted(
        "a chunk of {} records takes {} bytes for each: the limit is {}",
        records, sizeof(decoded.ends[0]), max_bytes);
  decoded.ends.reserve(records);
  Bytes size_in(sizes);
  uint64_t end = 0;
  for (uint64_t i = 0; i < records; ++i) {
    ASSIGN_OR_RETURN(const uint64_t size, size_in.Varint());
    if (size > bytes - end)
      return DataLoss("a chunk's records have over {} bytes", bytes);
    decoded.ends.push_back(end += size);
  }
  if (end != bytes || !size_in.rest().empty())
    return DataLoss("a chunk's records have {} bytes, its header says {}", end,
                    bytes);
  ASSIGN_OR_RETURN(decoded.values, Unpacked(compression, in.rest(), bytes));
  if (decoded.values.size() != bytes)
    return DataLoss("a chunk unpacks to {} bytes, its header says {}",
                    decoded.values.size(), bytes);
  return decoded;
}

}  // namespace

absl::StatusOr<RiegeliRecords> ReadRiegeliChunk(const StorageFile& file,
                                                uint64_t begin,
                                                uint64_t max_bytes) {
  uint64_t at = begin;
  std::vector<std::byte> header(kChunkHeader);
  RETURN_IF_ERROR(ReadAcross(file, &at, &header));
  const std::byte* const h = header.data();
  if (HighwayHash64(kKey, std::span(header).subspan(8)) != U64(h))
    return DataLoss("no chunk at {}: its header has another hash", begin);
  const uint64_t size = U64(h + 8);
  const auto type = static_cast<char>(h[24]);
  const uint64_t records = U64(h + 24) >> 8;
  const uint64_t decoded = U64(h + 32);
  if (type == 't')
    return Unimplemented("the chunk at {} is transposed: want transpose:false",
                         begin);
  if (type != 'r')
    return DataLoss("the chunk at {} is of type {}, want records", begin,
                    static_cast<int>(h[24]));
  if (size > max_bytes || decoded > max_bytes)
    return ResourceExhausted(
        "the chunk at {} has {} bytes, {} unpacked: the limit is {}", begin,
        size, decoded, max_bytes);
  if (size > file.size())
    return DataLoss("the chunk at {} claims {} bytes of a file of {}", begin,
                    size, file.size());
  std::vector<std::byte> data(size);
  RETURN_IF_ERROR(ReadAcross(file, &at, &data));
  if (HighwayHash64(kKey, data) != U64(h + 16))
    return DataLoss("the chunk at {} has another hash than its header says",
                    begin);
  return Decode(data, records, decoded, max_bytes);
}

}  // namespace leat::worker
