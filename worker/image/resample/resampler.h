// SPDX-License-Identifier: Apache-2.0
//
// Resampler: resizes an image that arrives row by row, straight into place.
//
// Each arriving row is resampled horizontally into a ring of rows, rounded to
// bytes; each output row is written as soon as the ring holds its taps. It
// keeps only a few rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/image/base/pixel_rows.h"
#include "worker/image/base/working_memory.h"
#include "worker/image/resample/kernels.h"
#include "worker/image/resample/table.h"

namespace leat::worker {

// Thread-compatible. Reused for image after image.
class Resampler {
 public:
  explicit Resampler(const Kernels& kernels) : kernels_(kernels) {}

  // The tables, to be built before Start.
  ResampleTable& horizontal() { return horizontal_; }
  ResampleTable& vertical() { return vertical_; }

  // Begins an image. Rows will arrive from input row vertical().first_input()
  // on; their first pixel is input column horizontal().first_input(). Output
  // row i is written to out + i × stride, which may be negative. `channels` 1:
  // gray, 3: RGB from 4-byte pixels. Errors are those of memory->Reserve, which
  // makes the ring of rows.
  absl::Status Start(int channels, uint8_t* out, ptrdiff_t stride,
                     WorkingMemory* memory);
  // Takes the next rows, with kRowPadding readable bytes after each.
  void Feed(const PixelRows& rows);

  // Returns the size in bytes of what no WorkingMemory has made.
  size_t scratch_bytes() const;

 private:
  uint8_t* RingRow(int row) {
    return reinterpret_cast<uint8_t*>(ring_.data()) +
           static_cast<size_t>(row % ring_rows_) * pitch_;
  }
  void Horizontal(const PixelRows& rows);
  void EmitReady();

  const Kernels& kernels_;
  ResampleTable horizontal_, vertical_;
  int channels_ = 3;
  uint8_t* out_ = nullptr;
  ptrdiff_t out_stride_ = 0;
  int next_in_ = 0;   // input row
  int next_out_ = 0;  // output row
  int ring_rows_ = 1;
  size_t pitch_ = 0;
  std::vector<std::byte> ring_;
  std::vector<const uint8_t*> taps_;
};

}  // namespace leat::worker
