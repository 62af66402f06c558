// SPDX-License-Identifier: Apache-2.0
//
// The kernels that decode the codes of a JPEG without a seek index
// (worker/image/formulas/jpeg_sync.h). A thread of each decodes the codes of a
// segment; launches follow one another:
//
//   guess      begins at the segment's first byte; clears the held blocks
//   over, back begin where the segment before has ended; each reads what the
//              other has written
//   sum        one thread: adds up the blocks and DC differences before each
//              segment
//   write      decodes by the host's rules, writes the held blocks, and leaves
//              the places of a seek index
//
// The last one sets the image's fault if a code of a needed row is refused, or
// if some segment before has not ended where the next one began.
//
// C++ and CUDA compile this file. Images are trusted, data are not.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/block_access.h"
#include "worker/gpu/kernels/codes.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/image/formulas/jpeg_sync.h"

namespace leat::worker {

struct SyncMemory {
  SyncSegment* segments;
  SyncPlace* ends[2];
};
LEAT_PIXEL SyncMemory SyncMemoryOf(const DeviceScan& scan, uint32_t segments) {
  uint8_t* const at = AtAddress(scan.sync);
  auto* const ends = reinterpret_cast<SyncPlace*>(at + uint64_t{segments} *
                                                           sizeof(SyncSegment));
  return {reinterpret_cast<SyncSegment*>(at), {ends, ends + segments}};
}
LEAT_PIXEL SyncScan SyncScanOf(const DeviceScan& scan) {
  return {AtAddress(scan.data),
          scan.data_bytes,
          scan.segment_bytes,
          reinterpret_cast<const CodeTable*>(AtAddress(scan.tables)),
          scan.blocks_of_mcu,
          scan.component_of,
          scan.dc,
          scan.ac};
}

LEAT_PIXEL void JpegGuessThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= image.segments) return;
  const DeviceScan& scan = ScanOf(image);
  auto* const blocks = reinterpret_cast<int16_t*>(AtAddress(image.blocks));
  const uint64_t count =
      uint64_t{image.columns} * image.rows * image.blocks_of_mcu;
  for (uint64_t i = thread; i < count; i += image.segments)
    ClearBlock(blocks + 64 * i);
  const SyncMemory memory = SyncMemoryOf(scan, image.segments);
  const SyncScan of = SyncScanOf(scan);
  SyncSegment segment;
  segment.begin = JpegSyncGuess(of, thread);
  memory.ends[0][thread] = JpegSyncDecode(of, thread, segment);
  memory.segments[thread] = segment;
}

// `from`: the index of the ends that are read.
LEAT_PIXEL void JpegPassThread(const DeviceJpeg& image, uint32_t thread,
                               int from) {
  if (thread >= image.segments) return;
  const DeviceScan& scan = ScanOf(image);
  const SyncMemory memory = SyncMemoryOf(scan, image.segments);
  const SyncPlace* const last = memory.ends[from];
  SyncPlace end = last[thread];
  if (thread > 0 && !(last[thread - 1] == memory.segments[thread].begin)) {
    SyncSegment segment;
    segment.begin = last[thread - 1];
    end = JpegSyncDecode(SyncScanOf(scan), thread, segment);
    memory.segments[thread] = segment;
  }
  memory.ends[1 - from][thread] = end;
}

LEAT_PIXEL void JpegSumThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread > 0 || image.segments == 0) return;
  const DeviceScan& scan = ScanOf(image);
  const SyncMemory memory = SyncMemoryOf(scan, image.segments);
  SyncSegment sum;
  for (uint32_t i = 0; i < image.segments; ++i) {
    SyncSegment& segment = memory.segments[i];
    const SyncSegment own = segment;
    segment.blocks = sum.blocks;
    sum.blocks += own.blocks;
    for (int c = 0; c < kSyncComponents; ++c) {
      segment.dc[c] = sum.dc[c];
      sum.dc[c] += own.dc[c];
    }
  }
  if (sum.blocks < scan.needed_blocks) SetFault(image);
}

// Returns the held block with this number of the file; nullptr: it is not held.
LEAT_PIXEL int16_t* HeldBlock(const DeviceJpeg& image, const DeviceScan& scan,
                              uint32_t block) {
  const uint32_t mcu = block / scan.blocks_of_mcu;
  const uint32_t part = block % scan.blocks_of_mcu;
  int16_t* const first =
      HeldMcu(image, scan, mcu % scan.columns, mcu / scan.columns);
  return first == nullptr || part >= image.blocks_of_mcu ? nullptr
                                                         : first + 64 * part;
}

// Leaves the place of an MCU, which the reader is at, if the index has an entry
// for it.
LEAT_PIXEL void LeavePlace(const DeviceScan& scan, uint32_t mcu,
                           const SyncReader& reader,
                           const uint32_t* predictors) {
  const uint32_t column = mcu % scan.columns;
  if (column % kSeekStep != 0) return;
  const uint32_t groups = (scan.columns + kSeekStep - 1) / kSeekStep;
  CodePlace& place = reinterpret_cast<CodePlace*>(
      AtAddress(scan.places))[mcu / scan.columns * groups + column / kSeekStep];
  place.bit = reader.bits.Offset(reader.scan.data);
  for (int i = 0; i < kSyncComponents; ++i)
    place.predictors[i] = static_cast<int16_t>(predictors[i]);
}

LEAT_PIXEL void JpegWriteThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= image.segments) return;
  const DeviceScan& scan = ScanOf(image);
  const SyncMemory memory = SyncMemoryOf(scan, image.segments);
  const SyncSegment segment = memory.segments[thread];
  uint32_t block = segment.blocks;
  if (block >= scan.needed_blocks) return;
  const SyncScan of = SyncScanOf(scan);
  bool sound = thread == 0 || memory.ends[0][thread - 1] == segment.begin;
  SyncReader reader(of, segment.begin);
  const uint32_t end_byte = (thread + 1) * of.segment_bytes;
  const uint8_t* const end =
      of.data + (end_byte < of.data_bytes ? end_byte : of.data_bytes);
  uint32_t predictors[kSyncComponents];
  for (int i = 0; i < kSyncComponents; ++i) predictors[i] = segment.dc[i];
  int16_t* to = HeldBlock(image, scan, block);
  while (sound && reader.IsBefore(end)) {
    const uint32_t component = scan.component_of[reader.part];
    if (scan.places != 0 && reader.part == 0 && reader.at == 0)
      LeavePlace(scan, block / scan.blocks_of_mcu, reader, predictors);
    uint32_t first = 0;
    int32_t value = 0;
    sound = reader.Take(&first, &value) && !reader.bits.Overrun();
    if (!sound) break;
    if (first == 0) {
      predictors[component] += static_cast<uint32_t>(value);
      value = static_cast<int32_t>(predictors[component]);
      sound = value == static_cast<int16_t>(value);
    }
    if (to != nullptr && first < 64) to[first] = static_cast<int16_t>(value);
    if (!reader.EndsBlock()) continue;
    if (++block == scan.needed_blocks) {
      if (scan.places != 0)
        LeavePlace(scan, block / scan.blocks_of_mcu, reader, predictors);
      break;
    }
    to = HeldBlock(image, scan, block);
  }
  if (!sound) SetFault(image);
}

}  // namespace leat::worker
