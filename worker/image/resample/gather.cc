// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/gather.h"

#include <cstring>

namespace leat::worker {
namespace {

// Reads and writes four bytes per pixel: the next pixel overwrites the excess
// byte. The last pixel is written alone.
void GatherThree(const uint8_t* row, std::span<const uint32_t> offsets,
                 uint8_t* out) {
  const size_t last = offsets.size() - 1;
  for (size_t x = 0; x < last; ++x, out += 3) memcpy(out, row + offsets[x], 4);
  memcpy(out, row + offsets[last], 3);
}

void GatherAny(const uint8_t* row, std::span<const uint32_t> offsets,
               size_t channels, uint8_t* out) {
  for (const uint32_t offset : offsets)
    for (size_t c = 0; c < channels; ++c) *out++ = row[offset + c];
}

}  // namespace

void Gather(const GatheredImage& image, uint8_t* out, ptrdiff_t stride,
            std::vector<uint32_t>* offsets) {
  const size_t width = image.columns.size();
  bool run = image.step == image.channels;
  offsets->resize(width);
  for (size_t x = 0; x < width; ++x) {
    (*offsets)[x] = static_cast<uint32_t>(image.columns[x]) *
                    static_cast<uint32_t>(image.step);
    run = run && image.columns[x] == image.columns[0] + static_cast<int32_t>(x);
  }
  const size_t bytes = width * image.channels;
  for (size_t y = 0; y < image.rows.size(); ++y, out += stride) {
    const uint8_t* row =
        image.first + static_cast<size_t>(image.rows[y]) * image.pitch;
    if (y > 0 && image.rows[y] == image.rows[y - 1])
      memcpy(out, out - stride, bytes);
    else if (run)
      memcpy(out, row + (*offsets)[0], bytes);
    else if (image.channels == 3 && row + image.pitch < image.end)
      GatherThree(row, *offsets, out);
    else if (image.channels == 1 && image.step == 1)
      for (size_t x = 0; x < width; ++x) out[x] = row[(*offsets)[x]];
    else
      GatherAny(row, *offsets, image.channels, out);
  }
}

}  // namespace leat::worker
