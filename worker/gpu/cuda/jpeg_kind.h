// SPDX-License-Identifier: Apache-2.0
//
// Which images nvJPEG is given in class nvjpeg: by what they are, never by
// load.
#pragma once

#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// Baseline, gray or YCbCr in one scan, chroma at full or half resolution, not
// huge. All others are libjpeg-turbo's, as in class exact.
bool IsForNvjpeg(const JpegDecoder::Header& header);

}  // namespace leat::worker
