// SPDX-License-Identifier: Apache-2.0
//
// PixelRows: decoded rows, handed from a decoder to a resampler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::worker {

// Bytes that must be readable after every input row and writable after every
// output row of the inner loops (resample/kernels.h).
inline constexpr size_t kRowPadding = 64;

// A run of decoded rows. A pixel has 1 byte (gray) or 4 (R, G, B, undefined);
// kRowPadding bytes after each row may be read.
struct PixelRows {
  const uint8_t* first = nullptr;  // the window's first pixel
  size_t stride = 0;
  int count = 0;
};

}  // namespace leat::worker
