// SPDX-License-Identifier: Apache-2.0
//
// The kernel that decodes the Huffman codes of JPEGs (layout/jpeg_descriptor.h)
// where places are known. A thread decodes a run of MCUs, and writes the held
// blocks of it; if a code is refused, zeros in the following ones, and the
// image's fault. Where no restart marker is between them, a run that does not
// end where the next one begins is refused, too: so the image is the one that a
// single thread would decode. What a run leaves before a marker is skipped, as
// libjpeg skips it.
//
// C++ and CUDA compile this file. Images are trusted, data are not.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/block_access.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/image/formulas/jpeg_codes.h"

namespace leat::worker {

LEAT_PIXEL void SetFault(const DeviceJpeg& image) {
  // All threads that write it write the same.
  if (image.fault != 0)
    *reinterpret_cast<volatile uint32_t*>(AtAddress(image.fault)) = 1;
}

LEAT_PIXEL void ClearBlock(int16_t* block) {
  auto* const words = reinterpret_cast<uint64_t*>(block);
  for (uint32_t i = 0; i < kPlainBytes / sizeof *words; ++i) words[i] = 0;
}

LEAT_PIXEL const DeviceScan& ScanOf(const DeviceJpeg& image) {
  return *reinterpret_cast<const DeviceScan*>(AtAddress(image.scan));
}

// Returns the first block of the MCU in this column and row of the file;
// nullptr: it is not held.
LEAT_PIXEL int16_t* HeldMcu(const DeviceJpeg& image, const DeviceScan& scan,
                            uint32_t column, uint32_t row) {
  // Before the first one they are large numbers.
  column -= scan.first_column;
  row -= scan.first_row;
  if (column >= image.columns || row >= image.rows) return nullptr;
  return reinterpret_cast<int16_t*>(AtAddress(image.blocks)) +
         uint64_t{64} * image.blocks_of_mcu *
             (uint64_t{row} * image.columns + column);
}

LEAT_PIXEL bool BeginsHere(const CodePlace& place, const CodeBits& bits,
                           const uint8_t* data, const int32_t* predictors) {
  bool same = bits.Offset(data) == place.bit;
  for (int i = 0; i < kJpegPlanes; ++i)
    same = same && predictors[i] == place.predictors[i];
  return same;
}

// Decodes run `thread`.
LEAT_PIXEL void JpegCodesThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= image.runs) return;
  const DeviceScan& scan = ScanOf(image);
  const auto* const tables =
      reinterpret_cast<const CodeTable*>(AtAddress(scan.tables));
  const CodeRun* const run =
      reinterpret_cast<const CodeRun*>(AtAddress(scan.runs)) + thread;
  const uint8_t* const data = AtAddress(scan.data);
  CodeBits bits{data + run->begin.bit / 8, data + scan.data_bytes};
  bits.Refill();
  bits.Drop(static_cast<int32_t>(run->begin.bit % 8));
  int32_t predictors[kJpegPlanes];
  for (int i = 0; i < kJpegPlanes; ++i)
    predictors[i] = run->begin.predictors[i];
  uint32_t column = run->first % scan.columns, row = run->first / scan.columns;
  bool sound = true;
  for (uint32_t left = run->end - run->first; left > 0; --left) {
    int16_t* block = HeldMcu(image, scan, column, row);
    for (uint32_t part = 0; part < scan.blocks_of_mcu; ++part) {
      const uint32_t component = scan.component_of[part];
      const bool held = block != nullptr && part < image.blocks_of_mcu;
      if (held) ClearBlock(block);
      sound =
          sound &&
          DecodeCodes(tables[scan.dc[component]], tables[scan.ac[component]],
                      bits, predictors + component, held ? block : nullptr);
      if (held) block += 64;
    }
    sound = sound && !bits.Overrun();
    if (++column == scan.columns) {
      column = 0;
      ++row;
    }
  }
  if (sound && scan.restarts == 0 && thread + 1 < image.runs &&
      run[1].first == run->end)
    sound = BeginsHere(run[1].begin, bits, data, predictors);
  if (!sound) SetFault(image);
}

}  // namespace leat::worker
