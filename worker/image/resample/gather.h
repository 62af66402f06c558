// SPDX-License-Identifier: Apache-2.0
//
// Images of which every pixel is one of another image: nearest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::worker {

struct GatheredImage {
  const uint8_t* first = nullptr;  // pixel of the source
  size_t pitch = 0;                // bytes from row to row
  size_t step = 0;                 // and from pixel to pixel, at least channels
  const uint8_t* end = nullptr;    // behind the last byte that may be read
  size_t channels = 0;             // bytes of a pixel that are taken
  std::span<const int32_t> rows, columns;  // of the result's pixels
};

// Writes rows.size() rows of columns.size() × channels bytes each, `stride`
// apart, which may be negative. `offsets` is working memory.
void Gather(const GatheredImage& image, uint8_t* out, ptrdiff_t stride,
            std::vector<uint32_t>* offsets);

}  // namespace leat::worker
