// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/decoding/jpeg_upload.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "worker/gpu/kernels/jpeg.h"

namespace leat::worker {
namespace {

uint64_t JpegAligned(uint64_t bytes) {
  return (bytes + kJpegAlignment - 1) / kJpegAlignment * kJpegAlignment;
}

uint64_t PixelBytes(const BlockWindow& window) {
  const auto pixels = static_cast<uint64_t>(window.window.width) *
                      static_cast<uint64_t>(window.window.height);
  return JpegAligned(pixels * (window.gray ? 1 : 4));
}

uint64_t PlaneBytes(const BlockWindow& window, int plane) {
  uint64_t samples = uint64_t{64} * window.columns * window.rows;
  if (plane == 0)
    samples *= static_cast<uint64_t>(window.across) *
               static_cast<uint64_t>(window.down);
  return JpegAligned(samples);
}

constexpr size_t kStepsBytes = kJpegPlanes * 64 * sizeof(uint32_t);

size_t OffsetBytes(const JpegBlocks& blocks) {
  return JpegAligned(blocks.offsets.size() * sizeof(uint32_t));
}

void WriteSteps(const std::array<BlockSteps, 3>& all, std::byte* to) {
  for (const BlockSteps& steps : all) {
    memcpy(to, steps.data(), 64 * sizeof(uint32_t));
    to += 64 * sizeof(uint32_t);
  }
}

// Returns the bytes of an image whose pixels have that much room.
uint64_t ImageBytes(const BlockWindow& window, uint64_t pixel_room) {
  uint64_t bytes = pixel_room;
  for (int plane = 0; plane < window.components; ++plane)
    bytes += PlaneBytes(window, plane);
  return bytes;
}

// Returns the room for pixels, and for blocks in their place.
uint64_t PixelAndBlockBytes(const BlockWindow& window) {
  return std::max(PixelBytes(window),
                  JpegAligned(window.blocks() * kPlainBytes));
}

// Describes all except the blocks.
DeviceJpeg DescribeWindow(const BlockWindow& window, DeviceAddress image,
                          uint64_t pixel_room) {
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  DeviceJpeg of{
      .pixels = image.number(),
      .columns = window.columns,
      .rows = window.rows,
      .blocks_of_mcu = window.blocks_of_mcu(),
      .components = static_cast<uint32_t>(window.components),
      .across = window.across,
      .down = window.down,
      .fancy = window.fancy,
      .gray = window.gray,
      .x = number(window.window.x),
      .y = number(window.window.y),
      .width = number(window.window.width),
      .height = number(window.window.height),
      .held_x = number(int64_t{8} * window.across * window.first_column),
      .held_y = number(int64_t{8} * window.down * window.first_row),
      .chroma_width = number(window.chroma_size().width),
      .chroma_height = number(window.chroma_size().height)};
  image += pixel_room;
  for (int plane = 0; plane < kJpegPlanes; ++plane) {
    of.planes[plane] = image.number();
    if (plane < window.components) image += PlaneBytes(window, plane);
  }
  return of;
}

constexpr uint32_t kLeastSegmentBytes = 512;

// Returns the length of segments if nothing has told where runs begin: a power
// of two that has the codes of 16 MCUs, on average. Of 500 photos, the last
// segment to change did so in the fourth pass; with a quarter of the length, in
// the seventeenth.
uint32_t SegmentBytesOf(const DeviceCodes& codes) {
  const uint64_t mcus =
      uint64_t{codes.layout.columns} * uint64_t{codes.layout.rows};
  uint32_t bytes = kLeastSegmentBytes;
  while (bytes * mcus < 16 * codes.data.size()) bytes *= 2;
  return bytes;
}

uint32_t SegmentsOf(const DeviceCodes& codes) {
  if (!codes.runs.empty()) return 0;
  const size_t bytes = SegmentBytesOf(codes);
  return static_cast<uint32_t>((codes.data.size() + bytes - 1) / bytes);
}

// The tables of a file, each once: Cb and Cr usually have the same.
class DistinctTables {
 public:
  explicit DistinctTables(const DeviceCodes& codes) {
    for (size_t i = 0; i < codes.layout.components; ++i) {
      IndexOf(codes.dc[i]);
      IndexOf(codes.ac[i]);
    }
  }
  uint8_t IndexOf(const CodeTable* table) {
    size_t i = 0;
    while (i < count_ && tables_[i] != table) ++i;
    if (i == count_) tables_[count_++] = table;
    return static_cast<uint8_t>(i);
  }
  size_t bytes() const { return count_ * sizeof(CodeTable); }
  void Write(std::byte* to) const {
    for (size_t i = 0; i < count_; ++i)
      memcpy(to + i * sizeof(CodeTable), tables_[i], sizeof(CodeTable));
  }

 private:
  size_t count_ = 0;
  std::array<const CodeTable*, size_t{2} * kJpegPlanes> tables_{};
};

// The parts of a payload of codes: where they begin, and where the last one
// ends.
struct CodesParts {
  explicit CodesParts(const DeviceCodes& codes)
      : tables(JpegAligned(kSteps + kStepsBytes)),
        runs(tables + DistinctTables(codes).bytes()),
        data(JpegAligned(runs + codes.runs.size() * sizeof(CodeRun))),
        end(data + codes.data.size()) {}

  static constexpr size_t kSteps = (sizeof(DeviceScan) + kJpegAlignment - 1) /
                                   kJpegAlignment * kJpegAlignment;
  size_t tables, runs, data, end;
};

}  // namespace

uint64_t JpegImageBytes(const BlockWindow& window) {
  return ImageBytes(window, PixelBytes(window));
}

size_t JpegPayloadBytes(const JpegBlocks& blocks) {
  return OffsetBytes(blocks) + kStepsBytes + blocks.blocks().size();
}

void WriteJpegPayload(const JpegBlocks& blocks, std::byte* to) {
  memcpy(to, blocks.offsets.data(), blocks.offsets.size() * sizeof(uint32_t));
  to += OffsetBytes(blocks);
  WriteSteps(blocks.steps, to);
  memcpy(to + kStepsBytes, blocks.blocks().data(), blocks.blocks().size());
}

DeviceJpeg DescribeJpeg(const JpegBlocks& blocks, DeviceAddress payload,
                        DeviceAddress image) {
  DeviceJpeg of =
      DescribeWindow(blocks.window, image, PixelBytes(blocks.window));
  of.code = blocks.code;
  of.offsets = payload.number();
  of.steps = (payload + OffsetBytes(blocks)).number();
  of.blocks = (payload + OffsetBytes(blocks) + kStepsBytes).number();
  return of;
}

uint64_t CodesImageBytes(const BlockWindow& window, size_t file_bytes) {
  constexpr uint64_t kBytes = sizeof(SyncSegment) + 2 * sizeof(SyncPlace);
  return ImageBytes(window, PixelAndBlockBytes(window)) +
         JpegAligned((file_bytes / kLeastSegmentBytes + 1) * kBytes);
}

size_t CodesPayloadBytes(const DeviceCodes& codes) {
  return CodesParts(codes).end;
}

void WriteCodesPayload(const DeviceCodes& codes, const CodesAddresses& at,
                       std::byte* to) {
  const CodesParts parts(codes);
  DeviceScan scan{
      .data = (at.payload + parts.data).number(),
      .runs = (at.payload + parts.runs).number(),
      .tables = (at.payload + parts.tables).number(),
      .data_bytes = static_cast<uint32_t>(codes.data.size()),
      .restarts = codes.restarts,
      .columns = codes.layout.columns,
      .first_column = codes.window.first_column,
      .first_row = codes.window.first_row,
      .blocks_of_mcu = codes.layout.blocks,
      .sync = (at.image +
               ImageBytes(codes.window, PixelAndBlockBytes(codes.window)))
                  .number(),
      .segment_bytes = SegmentBytesOf(codes),
      .needed_blocks =
          codes.window.end_row * codes.layout.columns * codes.layout.blocks,
      .places = at.places.number()};
  for (size_t i = 0; i < codes.layout.blocks; ++i)
    scan.component_of[i] = codes.layout.component_of[i];
  DistinctTables tables(codes);
  tables.Write(to + parts.tables);
  for (size_t i = 0; i < codes.layout.components; ++i) {
    scan.dc[i] = tables.IndexOf(codes.dc[i]);
    scan.ac[i] = tables.IndexOf(codes.ac[i]);
  }
  memcpy(to, &scan, sizeof scan);
  WriteSteps(codes.steps, to + CodesParts::kSteps);
  const auto runs = std::as_bytes(std::span(codes.runs));
  std::ranges::copy(runs, to + parts.runs);
  std::ranges::copy(std::as_bytes(codes.data), to + parts.data);
}

DeviceJpeg DescribeCodes(const DeviceCodes& codes, const CodesAddresses& at) {
  DeviceJpeg of =
      DescribeWindow(codes.window, at.image, PixelAndBlockBytes(codes.window));
  of.code = BlockCode::kPlain;
  of.steps = (at.payload + CodesParts::kSteps).number();
  of.blocks = at.image.number();
  of.scan = at.payload.number();
  of.runs = static_cast<uint32_t>(codes.runs.size());
  of.segments = SegmentsOf(codes);
  of.fault = at.fault.number();
  return of;
}

}  // namespace leat::worker
