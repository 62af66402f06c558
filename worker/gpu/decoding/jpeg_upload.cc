// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/decoding/jpeg_upload.h"

#include <algorithm>
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

}  // namespace

uint64_t JpegImageBytes(const BlockWindow& window) {
  uint64_t bytes = PixelBytes(window);
  for (int plane = 0; plane < window.components; ++plane)
    bytes += PlaneBytes(window, plane);
  return bytes;
}

size_t JpegPayloadBytes(const JpegBlocks& blocks) {
  return OffsetBytes(blocks) + kStepsBytes + blocks.blocks().size();
}

void WriteJpegPayload(const JpegBlocks& blocks, std::byte* to) {
  memcpy(to, blocks.offsets.data(), blocks.offsets.size() * sizeof(uint32_t));
  to += OffsetBytes(blocks);
  for (const BlockSteps& steps : blocks.steps) {
    memcpy(to, steps.data(), 64 * sizeof(uint32_t));
    to += 64 * sizeof(uint32_t);
  }
  memcpy(to, blocks.blocks().data(), blocks.blocks().size());
}

DeviceJpeg DescribeJpeg(const JpegBlocks& blocks, DeviceAddress payload,
                        DeviceAddress image) {
  const BlockWindow& window = blocks.window;
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  DeviceJpeg of{
      .blocks = (payload + OffsetBytes(blocks) + kStepsBytes).number(),
      .offsets = payload.number(),
      .steps = (payload + OffsetBytes(blocks)).number(),
      .pixels = image.number(),
      .code = blocks.code,
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
  image += PixelBytes(window);
  for (int plane = 0; plane < window.components; ++plane) {
    of.planes[plane] = image.number();
    image += PlaneBytes(window, plane);
  }
  return of;
}

}  // namespace leat::worker
