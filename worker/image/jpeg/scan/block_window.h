// SPDX-License-Identifier: Apache-2.0
//
// BlockWindow: the MCUs of a JPEG that the pixels of a window depend on.
//
// It covers the kinds of files whose pixels are computed outside libjpeg: Y
// alone, or Y, Cb and Cr, where Y has one or two samples per chroma sample
// along each axis. For example, pixel (16, 3) of a 4:2:0 image depends on luma
// in MCU (1, 0) and on the chroma samples 7 and 8, as fancy upsampling also
// takes the sample to the left: MCUs 0 and 1 are held.
#pragma once

#include <cstdint>

#include "worker/image/base/rect.h"

namespace leat::worker {

// The chroma samples along an axis, and how pixels are made from them.
struct ChromaAxis {
  int64_t pixels = 0;  // in the image
  int per_sample = 1;  // pixels per sample: 1 or 2
  bool fancy = false;  // true if neighbours count (2)

  int64_t samples() const { return (pixels + per_sample - 1) / per_sample; }
  int64_t mcus() const {
    const int64_t pixels_of_mcu = int64_t{8} * per_sample;
    return (pixels + pixels_of_mcu - 1) / pixels_of_mcu;
  }
  // Return the first and the last MCU that the pixels first … last depend on.
  int64_t FirstMcu(int64_t first) const;
  int64_t LastMcu(int64_t last) const;
};

struct BlockWindow {
  StoredSize size;  // of the image
  Rect window;      // of pixels, inside the image
  bool gray = false;
  int across = 1, down = 1;  // blocks of luma per MCU
  int components = 1;        // held components: 1 or 3
  bool fancy = false;
  // The held MCUs.
  uint32_t first_column = 0, first_row = 0, columns = 0, rows = 0;
  // The end of the rows of MCUs that libjpeg decodes for the window: from the
  // begin of the file, their codes have to be sound, else rows of the window
  // are lost. It can be one row more than is held: libjpeg makes two rows of
  // pixels at once where chroma has one row for two, and reads the row below
  // for both.
  uint32_t end_row = 0;

  // `chroma`: the file has chroma; if not, `across` and `down` are 1.
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
