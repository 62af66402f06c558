// SPDX-License-Identifier: Apache-2.0
//
// DaliResampler: resizes an image by rule "dali": two passes over floats, in
// the cheaper order, through a few rows of working memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/image/base/working_memory.h"
#include "worker/image/resample/dali_loops.h"
#include "worker/image/resample/dali_table.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

// Thread-compatible. Reused for image after image.
class DaliResampler {
 public:
  explicit DaliResampler(const DaliLoops& loops) : loops_(loops) {}

  // Returns the part of the source that Run needs. REQUIRES: view.resampled().
  Rect Plan(const View& view);

  // The pixels of the part that Plan returned.
  struct Pixels {
    const uint8_t* first = nullptr;
    size_t pitch = 0;              // bytes from row to row
    size_t step = 0;               // bytes from pixel to pixel
    const uint8_t* end = nullptr;  // after the last byte that may be read
  };
  // Writes row i of the result, which is mirrored across but not down, to out +
  // i × stride, which may be negative. Uses the first `channels` ≤ 4 bytes of
  // each pixel. Errors are those of memory->Reserve, which makes the rows of
  // floats.
  absl::Status Run(const Pixels& pixels, size_t channels, uint8_t* out,
                   ptrdiff_t stride, WorkingMemory* memory);

  // Returns the size in bytes of what no WorkingMemory has made.
  size_t scratch_bytes() const;

 private:
  void Copy(const Pixels& pixels, size_t channels, uint8_t* out,
            ptrdiff_t stride);
  void RunAcrossFirst(const Pixels& pixels, size_t channels, uint8_t* out,
                      ptrdiff_t stride);
  void RunDownFirst(const Pixels& pixels, size_t channels, uint8_t* out,
                    ptrdiff_t stride);
  // Repeats the edges of the row in padded_.
  void RepeatEdges(size_t step);
  float* padded_floats() { return reinterpret_cast<float*>(padded_.data()); }
  float* ring_floats() { return reinterpret_cast<float*>(ring_.data()); }
  void Across(size_t step, size_t channels, float* out);

  const DaliLoops& loops_;
  DaliTable across_, down_;
  bool across_first_ = true;
  size_t columns_ = 0;           // of the part
  std::vector<int32_t> starts_;  // across, for the row in padded_
  std::vector<int32_t> rows_;    // nearest: rows of the part
  std::vector<uint32_t> offsets_;
  std::vector<const float*> float_taps_;   // rows of the ring
  std::vector<const uint8_t*> byte_taps_;  // rows of the part
  // Floats: a row of the part, with its edges repeated; rows after the first
  // pass.
  std::vector<std::byte> padded_, ring_;
  size_t ring_pitch_ = 0;
};

}  // namespace leat::worker
