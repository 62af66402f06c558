// SPDX-License-Identifier: Apache-2.0
//
// What the JPEG kernels read of an image: where its blocks, their tables and
// its geometry are. Written on the host (decoding/jpeg_upload.h), in an array
// that has an image for each place along the launch's second axis.
//
// Of the image some MCUs are held, a rectangle of them; of each MCU the blocks
// of luma, row after row, and then one of each chroma component, if these are
// held. The first kernel makes samples of the blocks, in planes of whole
// blocks; the second one pixels of the samples.
#pragma once

#include <cstdint>

#include "worker/image/formulas/jpeg_pixel.h"

namespace leat::worker {

inline constexpr int kJpegPlanes = 3;

struct DeviceJpeg {
  // Addresses. Of the blocks, one behind the other, as `code` says; where each
  // of them begins there (uint32_t), and, behind the last one, where that ends;
  // of each component its BlockSteps (uint32_t[64]).
  uint64_t blocks = 0, offsets = 0, steps = 0;
  // Of planes of samples, rows without gaps, and of the pixels: one byte each,
  // or four.
  uint64_t planes[kJpegPlanes] = {};
  uint64_t pixels = 0;
  BlockCode code = BlockCode::kBytes;
  // MCUs that are held, and blocks of each.
  uint32_t columns = 0, rows = 0, blocks_of_mcu = 0;
  // Components that are held: 1, or 3.
  uint32_t components = 0;
  // Blocks of luma in an MCU, across and down: 1 or 2 each; where chroma has as
  // many samples as luma, or is not held, 1.
  int32_t across = 1, down = 1;
  // Pixels have weighted sums of chroma's samples; else, as where there is one
  // for each pixel, the sample that covers them.
  uint32_t fancy = 0;
  uint32_t gray = 0;  // pixels of one byte
  // The window, in pixels of the image, and the first ones of the held MCUs.
  int32_t x = 0, y = 0, width = 0, height = 0;
  int32_t held_x = 0, held_y = 0;
  // Chroma's samples in the whole image, beyond which there are none.
  int32_t chroma_width = 0, chroma_height = 0;
};

}  // namespace leat::worker
