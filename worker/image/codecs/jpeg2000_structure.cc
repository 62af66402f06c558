// SPDX-License-Identifier: Apache-2.0
//
// A JP2 file is a sequence of boxes (length, type, content); the box jp2c is
// the codestream. A codestream consists of a main header of marker segments,
// tile-parts and an end marker. Each tile-part has a header (SOT … SOD) and
// data; SOT gives its length.
#include "worker/image/codecs/jpeg2000_structure.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr int kMaxComponents = 16;
constexpr uint64_t kMaxTiles = 65535;
// Sizes of OpenJPEG's structures, rounded up.
constexpr uint64_t kTileBytes = 10'000;
constexpr uint64_t kTileComponentBytes = 1'200;
constexpr uint64_t kRecordBytes = 100;
constexpr uint64_t kPrecinctBytes = 400;
constexpr uint64_t kCodeBlockBytes = 600;
// A sample takes memory as decoded, and in its tile.
constexpr uint64_t kSampleBytes = 12, kResultBytes = 4;

// OpenJPEG's iterators look this often at a place while a part is processed.
constexpr uint64_t kVisitsOfPart = 32;
constexpr uint64_t kMaxProgressions = 32;  // OpenJPEG refuses more

enum Marker : uint32_t {
  kStartOfStream = 0xff4f,
  kSizes = 0xff51,
  kCoding = 0xff52,
  kComponentCoding = 0xff53,
  kProgressions = 0xff5f,
  kTransform = 0xff74,
  kCollection = 0xff75,
  kStartOfTile = 0xff90,
  kStartOfData = 0xff93,
  kEndOfStream = 0xffd9,
};

// The markers of segments that OpenJPEG reads, in ascending order.
constexpr uint32_t kReadMarkers[] = {
    0xff50, 0xff51, 0xff52, 0xff53, 0xff55, 0xff57, 0xff58, 0xff59,
    0xff5c, 0xff5d, 0xff5e, 0xff5f, 0xff60, 0xff61, 0xff63, 0xff64,
    0xff74, 0xff75, 0xff77, 0xff78, 0xff90, 0xff91};
bool IsRead(uint32_t marker) {
  return std::ranges::binary_search(kReadMarkers, marker);
}

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

class StreamWalker {
 public:
  StreamWalker(Bytes stream, Jpeg2000Structure* structure)
      : stream_(stream), structure_(structure) {}

  absl::Status Run() {
    at_ = 2;  // after the start
    RETURN_IF_ERROR(WalkHeader(kStartOfTile));
    if (tiles_ == 0) return DataLoss("damaged JPEG 2000: no image size");
    while (true) {
      if (at_ + 2 > stream_.size()) return Truncated();
      const uint32_t marker = BigEndian(stream_, at_, 2);
      if (marker == kEndOfStream) break;
      if (marker != kStartOfTile)
        return DataLoss("damaged JPEG 2000: marker {:04x} between tiles",
                        marker);
      RETURN_IF_ERROR(WalkTilePart());
    }
    Estimate();
    return absl::OkStatus();
  }

 private:
  absl::Status Truncated() const {
    return DataLoss(
        "truncated JPEG 2000: premature end of the codestream ({} bytes)",
        stream_.size());
  }

  // Walks marker segments until `last`, and stops there.
  absl::Status WalkHeader(uint32_t last) {
    while (at_ + 4 <= stream_.size()) {
      const uint32_t marker = BigEndian(stream_, at_, 2);
      if (marker == last) return absl::OkStatus();
      const size_t length = BigEndian(stream_, at_ + 2, 2);
      if (marker < 0xff00 || length < 2)
        return DataLoss("damaged JPEG 2000: marker {:04x} of {} bytes", marker,
                        length);
      if (at_ + 2 + length > stream_.size()) break;
      const Bytes content = stream_.subspan(at_ + 4, length - 2);
      RETURN_IF_ERROR(CheckUnread(marker, length));
      if (marker == kSizes) RETURN_IF_ERROR(ReadSizes(content));
      if (marker == kCoding && content.size() >= 5) {
        layers_ = std::max<uint64_t>(layers_, BigEndian(content, 2, 2));
        ReadCoding(content.subspan(5), BigEndian(content, 0, 1) & 1);
      }
      if (marker == kComponentCoding && content.size() >= 2)
        ReadCoding(content.subspan(2), BigEndian(content, 1, 1) & 1);
      if (marker == kProgressions) progressions_ += content.size() / 7;
      // Those of the main header, since every tile gets a copy.
      if (last == kStartOfTile &&
          (marker == kTransform || marker == kCollection))
        record_bytes_ += content.size() + kRecordBytes;
      at_ += 2 + length;
    }
    return Truncated();
  }

  // OpenJPEG ignores the length of a segment that it does not know: it goes on
  // at the next marker that it knows, in steps of two bytes. So that must be
  // the one behind the segment, or OpenJPEG would read others than the walker.
  absl::Status CheckUnread(uint32_t marker, size_t length) const {
    if (IsRead(marker)) return absl::OkStatus();
    bool skipped = length % 2 == 0;
    for (size_t i = 0; i + 2 <= length; i += 2)
      skipped = skipped && !IsRead(BigEndian(stream_, at_ + 2 + i, 2));
    if (skipped) return absl::OkStatus();
    return InvalidArgument(
        "JPEG 2000 with a segment {:04x} of {} bytes is not supported", marker,
        length);
  }

  absl::Status WalkTilePart() {
    if (stream_.size() - at_ < 12) return Truncated();
    const size_t begin = at_;
    const uint64_t length = BigEndian(stream_, at_ + 6, 4);
    RETURN_IF_ERROR(WalkHeader(kStartOfData));
    if (length == 0) {  // the last one: it extends to the end of the stream
      at_ = stream_.size() - 2;
    } else {
      if (length < at_ + 2 - begin)
        return DataLoss("damaged JPEG 2000: a tile-part of {} bytes", length);
      if (length > stream_.size() - begin) return Truncated();
      at_ = begin + length;
    }
    return absl::OkStatus();
  }

  absl::Status ReadSizes(Bytes content) {
    constexpr size_t kFixed = 36;
    if (tiles_ != 0)
      return DataLoss("damaged JPEG 2000: two segments of sizes");
    if (content.size() < kFixed + 3) return Truncated();
    uint64_t right[2], left[2], tile[2], tile_left[2];
    for (size_t i = 0; i < 2; ++i) {
      right[i] = BigEndian(content, 2 + 4 * i, 4);
      left[i] = BigEndian(content, 10 + 4 * i, 4);
      tile[i] = BigEndian(content, 18 + 4 * i, 4);
      tile_left[i] = BigEndian(content, 26 + 4 * i, 4);
      if (left[i] >= right[i] || tile[i] == 0 || tile_left[i] > left[i] ||
          tile_left[i] + tile[i] <= left[i])
        return DataLoss("damaged JPEG 2000: an image of {} to {}, tiles of {}",
                        left[i], right[i], tile[i]);
    }
    const uint32_t components = BigEndian(content, 34, 2);
    if (components < 1 || components > kMaxComponents)
      return InvalidArgument("JPEG 2000 of {} components, want 1 to {}",
                             components, kMaxComponents);
    if (content.size() < kFixed + 3 * components) return Truncated();
    uint64_t least_dx = 255, least_dy = 255;
    for (size_t c = 0; c < components; ++c) {
      const uint64_t dx = BigEndian(content, kFixed + 3 * c + 1, 1);
      const uint64_t dy = BigEndian(content, kFixed + 3 * c + 2, 1);
      if (dx == 0 || dy == 0)
        return DataLoss("damaged JPEG 2000: a subsampling of 0");
      least_dx = std::min(least_dx, dx);
      least_dy = std::min(least_dy, dy);
      const uint64_t width = CeilDiv(right[0], dx) - CeilDiv(left[0], dx);
      const uint64_t height = CeilDiv(right[1], dy) - CeilDiv(left[1], dy);
      if (c == 0) {
        structure_->width = width;
        structure_->height = height;
      }
      structure_->max_width = std::max(structure_->max_width, width);
      structure_->max_height = std::max(structure_->max_height, height);
    }
    structure_->components = static_cast<int>(components);
    tiles_ = 1;
    for (size_t i = 0; i < 2; ++i) {
      tiles_ *= CeilDiv(right[i] - tile_left[i], tile[i]);
      // The largest component decides.
      tile_side_[i] = CeilDiv(std::min(tile[i], right[i] - left[i]),
                              i == 0 ? least_dx : least_dy);
    }
    if (tiles_ > kMaxTiles)
      return InvalidArgument("JPEG 2000 of {} tiles, want at most {}", tiles_,
                             kMaxTiles);
    return absl::OkStatus();
  }

  // Adds up the memory that one tile of one component takes in this coding.
  void ReadCoding(Bytes content, bool has_precincts) {
    if (content.size() < 5) return;
    const uint32_t levels = BigEndian(content, 0, 1);
    const uint32_t block_x = (BigEndian(content, 1, 1) & 15) + 2;
    const uint32_t block_y = (BigEndian(content, 2, 1) & 15) + 2;
    if (levels > 32) return;  // OpenJPEG refuses it
    uint64_t bytes = 0, all_precincts = 0, all_blocks = 0;
    for (uint32_t r = 0; r <= levels; ++r) {
      uint32_t log_x = 15, log_y = 15;
      if (has_precincts && 5 + r < content.size()) {
        const uint32_t precinct = BigEndian(content, 5 + r, 1);
        log_x = precinct & 15;
        log_y = precinct >> 4;
      }
      const uint32_t shift = levels - r;
      const uint64_t width = (tile_side_[0] >> shift) + 1;
      const uint64_t height = (tile_side_[1] >> shift) + 1;
      const uint64_t precincts =
          ((width >> log_x) + 2) * ((height >> log_y) + 2);
      const uint64_t blocks =
          ((width >> std::min(block_x, log_x > 0 ? log_x - 1 : 0)) + 2) *
          ((height >> std::min(block_y, log_y > 0 ? log_y - 1 : 0)) + 2);
      bytes += precincts * kPrecinctBytes + blocks * kCodeBlockBytes;
      most_precincts_ = std::max(most_precincts_, precincts);
      least_log_[0] = std::min(least_log_[0], log_x + shift);
      least_log_[1] = std::min(least_log_[1], log_y + shift);
      all_precincts += precincts;
      all_blocks += blocks;
    }
    precincts_ = std::max(precincts_, all_precincts);
    blocks_ = std::max(blocks_, all_blocks);
    coding_bytes_ = std::max(coding_bytes_, bytes);
    resolutions_ = std::max<uint64_t>(resolutions_, levels + 1);
  }

  // Components and tiles may have different codings: the largest of each number
  // decides.
  void Estimate() {
    const auto components = static_cast<uint64_t>(structure_->components);
    const uint64_t pixels = structure_->max_width * structure_->max_height;
    // When the columns of a palette are made, the tiles are gone.
    const uint64_t pixel_bytes =
        std::max(components * kSampleBytes,
                 (components + structure_->columns) * kResultBytes);
    // A flag of 16 bits for each packet.
    const uint64_t packet_bytes =
        2 * (layers_ + 1) * resolutions_ * most_precincts_ * components;
    // OpenJPEG copies the data of a tile, which may be all of the stream.
    structure_->memory_bytes = stream_.size() + pixels * pixel_bytes +
                               tiles_ * (kTileBytes + record_bytes_ +
                                         kTileComponentBytes * components) +
                               coding_bytes_ * components + packet_bytes;
    // For each progression, OpenJPEG may visit every corner of the finest
    // precincts, of the finest width and the finest height.
    uint64_t visits = resolutions_;
    for (int i = 0; i < 2; ++i)
      visits *= (tile_side_[i] >> std::min(least_log_[i], 32u)) + 2;
    visits *= 1 + std::min(progressions_, kMaxProgressions);
    structure_->parts =
        tiles_ * components *
        (blocks_ + precincts_ * layers_ + visits / kVisitsOfPart);
  }

  const Bytes stream_;
  Jpeg2000Structure* const structure_;
  size_t at_ = 0;
  uint64_t tiles_ = 0, layers_ = 1;
  uint64_t tile_side_[2] = {};
  uint64_t progressions_ = 0;
  uint64_t record_bytes_ = 0;  // of a tile's copy of transforms
  // The greatest numbers of one component in a tile.
  uint64_t coding_bytes_ = 0, precincts_ = 0, blocks_ = 0;
  uint64_t resolutions_ = 1, most_precincts_ = 0;  // in one resolution
  // The logarithms of the least precinct sides, in samples of the tile.
  uint32_t least_log_[2] = {32, 32};
};

struct FileBox {
  Bytes type, content;
};

// Reads the box at `*at` and moves `*at` behind it; false if the box exceeds
// the bytes.
bool NextBox(Bytes bytes, size_t* at, FileBox* box) {
  const size_t rest = bytes.size() - *at;
  if (rest < 8) return false;
  uint64_t length = BigEndian(bytes, *at, 4);
  size_t header = 8;
  if (length == 1 && rest >= 16) {
    header = 16;
    length = uint64_t{BigEndian(bytes, *at + 8, 4)} << 32 |
             BigEndian(bytes, *at + 12, 4);
  } else if (length == 0) {
    length = rest;
  }
  if (length < header || length > rest) return false;
  *box = {bytes.subspan(*at + 4, 4),
          bytes.subspan(*at + header, length - header)};
  *at += length;
  return true;
}

void ReadPalette(const FileBox& box, Jpeg2000Structure* structure) {
  if (!BytesAre(box.type, 0, "pclr") || box.content.size() < 3) return;
  structure->palette = true;
  structure->columns =
      std::max<uint64_t>(structure->columns, BigEndian(box.content, 2, 1));
}

// Finds the codestream of a JP2 file, and the palette before it. OpenJPEG heeds
// one that follows the header instead of being in it.
absl::StatusOr<Bytes> FindStream(Bytes file, Jpeg2000Structure* structure) {
  FileBox box, inner;
  bool has_header = false;
  size_t at = 0;
  while (NextBox(file, &at, &box)) {
    if (BytesAre(box.type, 0, "jp2c") && !box.content.empty())
      return box.content;
    if (has_header) ReadPalette(box, structure);
    if (!BytesAre(box.type, 0, "jp2h")) continue;
    has_header = true;
    for (size_t i = 0; NextBox(box.content, &i, &inner);)
      ReadPalette(inner, structure);
  }
  return DataLoss("truncated JPEG 2000: {} bytes, and a box at {} leads beyond",
                  file.size(), at);
}

}  // namespace

absl::StatusOr<Jpeg2000Structure> ReadJpeg2000Structure(Bytes file) {
  Jpeg2000Structure structure;
  Bytes stream = file;
  structure.boxed = BigEndian(file, 0, 2) != kStartOfStream;
  if (structure.boxed) {
    ASSIGN_OR_RETURN(stream, FindStream(file, &structure));
  }
  if (stream.size() < 4 || BigEndian(stream, 0, 2) != kStartOfStream)
    return DataLoss("damaged JPEG 2000: no codestream");
  RETURN_IF_ERROR(StreamWalker(stream, &structure).Run());
  return structure;
}

}  // namespace leat::worker
