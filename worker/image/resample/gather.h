// SPDX-License-Identifier: Apache-2.0
//
// Gather: makes an image by copying pixels of another one: filter nearest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::worker {

struct GatheredImage {
  const uint8_t* first = nullptr;  // first pixel of the source
  size_t pitch = 0;                // bytes from row to row
  size_t step = 0;               // bytes from pixel to pixel, at least channels
  const uint8_t* end = nullptr;  // after the last byte that may be read
  size_t channels = 0;           // bytes that are copied per pixel
  // source of the result's rows and columns
  std::span<const int32_t> rows, columns;
};

// Writes rows.size() rows of columns.size() × channels bytes each, `stride`
// apart, which may be negative. `offsets` is working memory.
void Gather(const GatheredImage& image, uint8_t* out, ptrdiff_t stride,
            std::vector<uint32_t>* offsets);

}  // namespace leat::worker
