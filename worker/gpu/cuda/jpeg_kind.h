// SPDX-License-Identifier: Apache-2.0
//
// The images that nvJPEG is given in class nvjpeg: chosen by their kind, never
// by load.
#pragma once

#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// True if the image is baseline, gray or YCbCr in one scan, chroma at full or
// half resolution, and not huge. libjpeg-turbo decodes all others, as in class
// exact.
bool IsForNvjpeg(const JpegDecoder::Header& header);

}  // namespace leat::worker
