// SPDX-License-Identifier: Apache-2.0
//
// DeviceJpeg: the input of the JPEG kernels for an image: the addresses of its
// blocks and their tables, and its geometry. It is written on the host
// (decoding/jpeg_upload.h), in an array with one image per index of the
// launch's second axis.
//
// A rectangle of the image's MCUs is held; of each MCU, the blocks of luma, row
// after row, and then one block of each chroma component, if these are held.
// The first kernel makes samples from the blocks, in planes of whole blocks;
// the second one makes pixels from the samples.
#pragma once

#include <cstdint>

#include "worker/image/formulas/jpeg_pixel.h"

namespace leat::worker {

inline constexpr int kJpegPlanes = 3;

struct DeviceJpeg {
  // Addresses: `blocks` of the blocks, one after the other, coded as `code`
  // says; `offsets` of the begin of each (uint32_t), followed by the end of the
  // last one; `steps` of the BlockSteps per component (uint32_t[64]).
  uint64_t blocks = 0, offsets = 0, steps = 0;
  // Addresses of the planes of samples, rows without gaps, and of the pixels,
  // which have one byte each, or four.
  uint64_t planes[kJpegPlanes] = {};
  uint64_t pixels = 0;
  BlockCode code = BlockCode::kBytes;
  // The held MCUs, and the number of blocks in each.
  uint32_t columns = 0, rows = 0, blocks_of_mcu = 0;
  // The number of held components: 1, or 3.
  uint32_t components = 0;
  // Blocks of luma per MCU, across and down: 1 or 2 each; 1 if chroma has as
  // many samples as luma, or is not held.
  int32_t across = 1, down = 1;
  // If not 0, pixels are weighted sums of chroma samples; if 0, the sample that
  // covers them, for example if there is one per pixel.
  uint32_t fancy = 0;
  uint32_t gray = 0;  // pixels of one byte
  // The window, in pixels of the image, and the first pixel of the held MCUs.
  int32_t x = 0, y = 0, width = 0, height = 0;
  int32_t held_x = 0, held_y = 0;
  // The size of chroma in the whole image, in samples.
  int32_t chroma_width = 0, chroma_height = 0;
};

}  // namespace leat::worker
