// SPDX-License-Identifier: Apache-2.0
//
// ImageScratch: the objects and memory with which a thread decodes and
// resamples images. The decoder and the resamplers own their working memory;
// the buffers here hold pixels between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/image/base/limits.h"
#include "worker/image/base/working_memory.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/resample/dali_resampler.h"
#include "worker/image/resample/resampler.h"

namespace leat::worker {

struct ImageScratch : WorkingMemory {
  explicit ImageScratch(const ImageLimits& image_limits)
      : WorkingMemory(image_limits),
        decoder(image_limits),
        resampler(BestKernels()),
        dali(BestDaliLoops()) {}

  // Returns the size in bytes of the buffers, the decoder and the resamplers.
  size_t held() const {
    return buffer_bytes() + decoder.scratch_bytes() +
           resampler.scratch_bytes() + dali.scratch_bytes();
  }

  JpegDecoder decoder;
  Resampler resampler;
  DaliResampler dali;
  // An image whose orientation must be changed: as stored, and as turned.
  std::vector<std::byte> stored, turned;
  // The part of an image that `dali` reads.
  std::vector<std::byte> window;
  // Which pixel of the image each pixel of a result is taken from.
  std::vector<int32_t> rows_taken, columns_taken;
  std::vector<uint32_t> offsets_taken;
  // An image that is decoded whole.
  std::vector<std::byte> whole;
  // Rows before they enter the resampler, and one channel of a result.
  std::vector<std::byte> rows, plane;
};

}  // namespace leat::worker
