// SPDX-License-Identifier: Apache-2.0
//
// Decisions about a file's decoding, made from the header that libjpeg has
// read.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/jpeg/scan/block_window.h"

namespace leat::worker {

// True if libjpeg stores the coefficients of the whole image before it returns
// the first row.
bool StoresCoefficients(jpeg_decompress_struct* cinfo);
// Returns how many bytes the coefficients take.
uint64_t CoefficientBytes(const jpeg_decompress_struct& cinfo);

// libjpeg's cropping is exact, given a margin of one iMCU, if its upsampling
// reads no further than the neighbouring sample. Returns true for those kinds,
// and false for the rare others.
bool PartialIsExact(const jpeg_decompress_struct& cinfo);

// Returns the window's blocks; nullopt unless the file has one sequential scan,
// Huffman coded, of 8 bits; Y, or Y, Cb and Cr where Y has one or two samples
// per chroma sample along each axis.
// JpegDecoder::BlocksOf also depends on the decoder's scale and forms.
std::optional<BlockWindow> BlocksOfWindow(const jpeg_decompress_struct& cinfo,
                                          const Rect& window, bool gray);

bool IsCmyk(const jpeg_decompress_struct& cinfo);

}  // namespace leat::worker
