// SPDX-License-Identifier: Apache-2.0
//
// What a Scratch holds.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/image/dali_resampler.h"
#include "worker/image/damaged_view.h"
#include "worker/image/jpeg_decoder.h"
#include "worker/image/resampler.h"
#include "worker/image/row_program.h"
#include "worker/image/tensor_ops.h"

namespace leat::worker {

// Values of a row in progress, by node, and the memory of those that are not
// outputs.
struct RowValues {
  std::vector<Tensor> values;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::vector<std::byte>> copies;  // of stored values
  // Values that show an image of a damaged file: hardly ever any.
  std::vector<std::pair<uint32_t, DamagedView>> damaged;
};

struct Scratch::State {
  explicit State(const ImageLimits& image_limits)
      : limits(image_limits),
        granted(image_limits.kept_scratch_bytes),
        decoder(image_limits),
        resampler(BestKernels()),
        dali(BestDaliLoops()) {}

  // Makes `buffer` hold at least `bytes` and kRowPadding more. Contents are
  // lost. kResourceExhausted: the row has asked for over max_scratch_bytes.
  // What earlier rows have left does not count, so that whether a row fails
  // depends on that row alone.
  // kAborted: more than `granted`; the row is to be computed again.
  absl::Status Reserve(size_t bytes, std::vector<std::byte>* buffer);
  // The same for what a library takes while it decodes an image, which is over
  // before the next one.
  absl::Status Charge(uint64_t bytes);
  // In bytes, of this and of the decoder and the resamplers.
  size_t held() const;
  // That the row has no more than was granted. kAborted: as Reserve's.
  absl::Status Afford();

  const ImageLimits limits;
  // What the row may have in all, and what it would have needed; 0: no more.
  uint64_t granted;
  uint64_t lacked = 0;
  JpegDecoder decoder;
  Resampler resampler;
  DaliResampler dali;
  // An image whose orientation must be changed: as stored, as turned.
  std::vector<std::byte> stored, turned;
  // The part of an image that `dali` reads.
  std::vector<std::byte> window;
  // Which pixel of the image each pixel of a result is.
  std::vector<int32_t> rows_taken, columns_taken;
  std::vector<uint32_t> offsets_taken;
  // An image that is decoded whole.
  std::vector<std::byte> whole;
  // Rows on their way into the resampler, and one channel of a result.
  std::vector<std::byte> rows, plane;
  RowValues row, partner;
  // What the row in progress has asked for, of each buffer the most.
  std::vector<std::pair<const void*, size_t>> asked;
  size_t asked_bytes = 0;
  uint64_t charged = 0;     // the most that a library has taken
  uint64_t steps_run = 0;   // of programs; for tests
  size_t buffer_bytes = 0;  // of all vectors that Reserve has made
};

}  // namespace leat::worker
