// SPDX-License-Identifier: Apache-2.0
//
// What the header that libjpeg has read says of how a file is decoded.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/jpeg/scan/block_window.h"

namespace leat::worker {

// Samples are stored for all of the image before the first row comes out.
bool StoresCoefficients(jpeg_decompress_struct* cinfo);
// Returns how many bytes the coefficients take.
uint64_t CoefficientBytes(const jpeg_decompress_struct& cinfo);

// libjpeg's cropping is exact, given a margin of one iMCU, where its
// upsampling looks at no more than the neighbouring sample: everywhere but in
// kinds that hardly exist, which are not worth the doubt.
bool PartialIsExact(const jpeg_decompress_struct& cinfo);

// Like JpegDecoder::BlocksOf, which says more: of one sequential scan, Huffman
// coded, of 8 bits, without restart markers; Y, or Y, Cb and Cr where Y has one
// or two samples along each axis for each of chroma's.
std::optional<BlockWindow> BlocksOfWindow(const jpeg_decompress_struct& cinfo,
                                          const Rect& window, bool gray);

bool IsCmyk(const jpeg_decompress_struct& cinfo);

}  // namespace leat::worker
