// SPDX-License-Identifier: Apache-2.0
//
// DeviceJpeg: the input of the JPEG kernels for an image: the addresses of its
// blocks and their tables, and its geometry. It is written on the host
// (decoding/jpeg_upload.h), in an array with one image per index of the
// launch's second axis. DeviceScan: the codes of an image whose blocks a kernel
// decodes.
//
// A rectangle of the image's MCUs is held; of each MCU, the blocks of luma, row
// after row, and then one block of each chroma component, if these are held.
// A kernel makes samples from the blocks, in planes of whole blocks; another
// one makes pixels from the samples. Before them, a kernel makes the blocks of
// those images whose codes were sent.
#pragma once

#include <cstdint>

#include "worker/image/formulas/jpeg_codes.h"
#include "worker/image/formulas/jpeg_pixel.h"
#include "worker/image/formulas/jpeg_sync.h"

namespace leat::worker {

inline constexpr int kJpegPlanes = 3;

struct DeviceScan {
  // Addresses: of the data; of a CodeRun per run, in their order, which have
  // all held MCUs; of the CodeTables.
  uint64_t data = 0, runs = 0, tables = 0;
  uint32_t data_bytes = 0;
  uint32_t restarts = 0;  // 1: a restart marker ends each run but the last
  // MCUs per row of the file, and the first held MCU.
  uint32_t columns = 0, first_column = 0, first_row = 0;
  // The number of blocks per MCU in the file, and their components: the first
  // ones are held. Then, per component, the indexes of its tables.
  uint32_t blocks_of_mcu = 0;
  uint8_t component_of[6] = {};
  uint8_t dc[kJpegPlanes] = {}, ac[kJpegPlanes] = {};
  // If threads find their places by themselves: the address of their working
  // memory, a SyncSegment per segment and twice a SyncPlace; and the number of
  // blocks that have to be sound.
  uint64_t sync = 0;
  uint32_t segment_bytes = 0;
  uint32_t needed_blocks = 0;
  // The address at which such threads leave a CodePlace per entry of a seek
  // index of the needed rows, and one for the MCU behind them; 0: they do not.
  uint64_t places = 0;
};

struct DeviceJpeg {
  // Addresses: `blocks` of the blocks, one after the other, coded as `code`
  // says; `offsets` of the begin of each (uint32_t), followed by the end of the
  // last one; `steps` of the BlockSteps per component (uint32_t[64]). Blocks of
  // kPlain have no offsets, and may lie where the pixels will be.
  uint64_t blocks = 0, offsets = 0, steps = 0;
  // The address of the DeviceScan from which a kernel makes the blocks, and the
  // number of its runs; 0: the host has made them.
  uint64_t scan = 0;
  uint32_t runs = 0;
  // The number of segments, if nothing has told the runs.
  uint32_t segments = 0;
  // The address of a word that kernels set to 1 if the scan is refused, or has
  // a block that is not exact; 0: the host has looked.
  uint64_t fault = 0;
  // Addresses of the planes of samples, rows without gaps, and of the pixels,
  // which have one byte each, or four. A plane that is not held has an address,
  // too, since a kernel makes pointers of all three.
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
