// SPDX-License-Identifier: Apache-2.0
//
// BlockWindow: which MCUs of a JPEG the pixels of a window are made of.
//
// Of the kinds whose pixels are made elsewhere than in libjpeg: Y alone, or Y,
// Cb and Cr, where Y has one or two samples for each of chroma's along each
// axis. For example pixel (16, 3) of a 4:2:0 image is made of luma in MCU (1,
// 0) and of the chroma samples 7 and 8, as fancy upsampling takes the one on
// the left as well: MCUs 0 and 1 are held.
#pragma once

#include <cstdint>

#include "worker/image/base/rect.h"

namespace leat::worker {

// Chroma's samples along an axis, and how pixels are made of them.
struct ChromaAxis {
  int64_t pixels = 0;  // of the image
  int per_sample = 1;  // pixels: 1 or 2
  bool fancy = false;  // neighbours count (2)

  int64_t samples() const { return (pixels + per_sample - 1) / per_sample; }
  int64_t mcus() const {
    const int64_t pixels_of_mcu = int64_t{8} * per_sample;
    return (pixels + pixels_of_mcu - 1) / pixels_of_mcu;
  }
  // The first and the last MCU of which the pixels first … last are made.
  int64_t FirstMcu(int64_t first) const;
  int64_t LastMcu(int64_t last) const;
};

struct BlockWindow {
  StoredSize size;  // of the image
  Rect window;      // of the pixels, inside it
  bool gray = false;
  int across = 1, down = 1;  // blocks of luma in an MCU
  int components = 1;        // that are held: 1 or 3
  bool fancy = false;
  // MCUs that are held.
  uint32_t first_column = 0, first_row = 0, columns = 0, rows = 0;
  // The rows of MCUs that libjpeg decodes for the window: their codes have to
  // be sound, from the file's begin on, else rows of the window are lost. One
  // more than are held, at times: libjpeg makes two rows of pixels at once
  // where chroma has one row for two, and looks at the row below for both.
  uint32_t end_row = 0;

  // `chroma`: the file has it; `across`, `down` are 1 where it has not.
  static BlockWindow Of(StoredSize size, const Rect& window, bool chroma,
                        bool gray, int across, int down);

  uint32_t blocks_of_mcu() const {
    return static_cast<uint32_t>(across * down + components - 1);
  }
  uint64_t blocks() const { return uint64_t{columns} * rows * blocks_of_mcu(); }
  StoredSize chroma_size() const {
    return {(size.height + down - 1) / down,
            (size.width + across - 1) / across};
  }
};

}  // namespace leat::worker
