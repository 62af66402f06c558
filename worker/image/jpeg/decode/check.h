// SPDX-License-Identifier: Apache-2.0
//
// Whether rows of a JPEG file can be decoded, found out without decoding them.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// What decoding any window whose last row is row `rows` - 1 of the stored image
// would say of damage: OK or kDataLoss. It costs the Huffman decoding of that
// many rows, and the pixels of the last few.
//
// Who does not decode by libjpeg-turbo asks two things with it. With `rows`
// where a pipeline's views of the image end: whether the row is a bad sample.
// With the image's height: whether a decoder that looks at all of the file, and
// need not notice damage, may be given it.
//
// Other errors as JpegDecoder::Start's. REQUIRES: decoder->Open succeeded since
// the last Start, and has to again before the next one; 1 ≤ rows ≤ height.
absl::Status CheckJpegRows(JpegDecoder* decoder, int64_t rows, bool gray);

}  // namespace leat::worker
