// SPDX-License-Identifier: Apache-2.0
//
// The kernel that decodes the Huffman codes of JPEGs (layout/jpeg_descriptor.h).
// A thread decodes a run: the MCUs from an entry of the seek index on, up to
// the next entry or the end of the held MCUs. It writes every held block of its
// run; if a code is refused, zeros in the following ones, and the image's
// fault. A run that does not end where the next one of its row begins is
// refused, too: so the image is the one that a single thread would decode.
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

// True if `run` begins here.
LEAT_PIXEL bool BeginsHere(const CodeRun& run, const CodeBits& bits,
                           const uint8_t* data, const int32_t* predictors) {
  bool same = bits.Offset(data) == run.bit;
  for (int i = 0; i < kJpegPlanes; ++i)
    same = same && predictors[i] == run.predictors[i];
  return same;
}

// Decodes run `thread`.
LEAT_PIXEL void JpegCodesThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= image.runs) return;
  const DeviceScan& scan =
      *reinterpret_cast<const DeviceScan*>(AtAddress(image.scan));
  const auto* const tables =
      reinterpret_cast<const CodeTable*>(AtAddress(scan.tables));
  const CodeRun& run =
      reinterpret_cast<const CodeRun*>(AtAddress(scan.runs))[thread];
  const uint8_t* const data = AtAddress(scan.data);
  CodeBits bits{data + run.bit / 8, data + scan.data_bytes};
  bits.Refill();
  bits.Drop(static_cast<int32_t>(run.bit % 8));
  int32_t predictors[kJpegPlanes];
  for (int i = 0; i < kJpegPlanes; ++i) predictors[i] = run.predictors[i];

  const uint32_t row = thread / scan.runs_of_row;
  // Columns are counted from the first held MCU; before it they are "negative".
  const uint32_t first = thread % scan.runs_of_row * scan.step - scan.skipped;
  auto* block = reinterpret_cast<int16_t*>(AtAddress(image.blocks));
  const uint32_t first_held = static_cast<int32_t>(first) < 0 ? 0 : first;
  block += uint64_t{64} * image.blocks_of_mcu *
           (uint64_t{row} * image.columns + first_held);
  bool sound = true;
  for (uint32_t i = 0; i < scan.step; ++i) {
    const auto column = static_cast<int32_t>(first + i);
    if (column >= static_cast<int32_t>(image.columns)) break;
    for (uint32_t part = 0; part < scan.blocks_of_mcu; ++part) {
      const uint32_t component = scan.component_of[part];
      const bool held = column >= 0 && part < image.blocks_of_mcu;
      if (held) ClearBlock(block);
      sound =
          sound &&
          DecodeCodes(tables[scan.dc[component]], tables[scan.ac[component]],
                      bits, predictors + component, held ? block : nullptr);
      if (held) block += 64;
    }
    sound = sound && !bits.Overrun();
  }
  if (thread % scan.runs_of_row + 1 < scan.runs_of_row)
    sound = sound && BeginsHere((&run)[1], bits, data, predictors);
  if (!sound) SetFault(image);
}

}  // namespace leat::worker
