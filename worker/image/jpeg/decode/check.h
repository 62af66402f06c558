// SPDX-License-Identifier: Apache-2.0
//
// CheckJpegRows: finds out without decoding whether rows of a JPEG file can be
// decoded.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// Returns the damage that decoding any window would report whose last row is
// row `rows` - 1 of the stored image: OK or kDataLoss. It costs the Huffman
// decoding of that many rows, and the pixels of the last few.
//
// Code that does not decode by libjpeg-turbo answers two questions with it.
// With `rows` where a pipeline's views of the image end: whether the row is a
// bad sample. With the image's height: whether the file may be given to a
// decoder that reads all of it, and need not notice damage.
//
// Other errors are those of JpegDecoder::Start. REQUIRES: decoder->Open
// succeeded since the last Start, and is called again before the next one; 1 ≤
// rows ≤ height.
absl::Status CheckJpegRows(JpegDecoder* decoder, int64_t rows, bool gray);

}  // namespace leat::worker
