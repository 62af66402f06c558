// SPDX-License-Identifier: Apache-2.0
//
// Decodes a window of one pixel, in the last row: libjpeg skips the rows above
// by decoding codes and dropping their coefficients.
#include "worker/image/jpeg/decode/check.h"

#include "core/status.h"

namespace leat::worker {

absl::Status CheckJpegRows(JpegDecoder* decoder, int64_t rows, bool gray) {
  RETURN_IF_ERROR(decoder->Start({0, rows - 1, 1, 1}, gray));
  PixelRows last;
  RETURN_IF_ERROR(decoder->ReadRows(&last));
  return decoder->damage();
}

}  // namespace leat::worker
