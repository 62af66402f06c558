// SPDX-License-Identifier: Apache-2.0
//
// The fake nvJPEG's view of an image: its headers, and its pixels by
// libjpeg-turbo (accurate DCT, like the engine; chroma replicated unless
// interpolation is requested).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/nvjpeg.h"

namespace leat::fake_cuda {

struct JpegInfo {
  int width = 0, height = 0, components = 0;
  bool baseline = false;     // sequential, 8 bits, Huffman
  bool single_scan = false;  // the first scan has all components
  bool cmyk = false;
  cuda::NvjpegSubsampling subsampling = cuda::NvjpegSubsampling::kUnknown;
};

struct DecodeOptions {
  cuda::NvjpegFormat format = cuda::NvjpegFormat::kRgbi;
  cuda::NvjpegScale scale = cuda::NvjpegScale::kNone;
  int x = 0, y = 0, width = 0, height = 0;  // width 0: all
  bool interpolate = false;
  bool spoil_edges = false;
  bool turn = false;  // as the file's EXIF orientation says
};

struct Pixels {
  int width = 0, height = 0, channels = 0;
  std::vector<uint8_t> bytes;  // interleaved
};

cuda::NvjpegResult ReadInfo(std::span<const uint8_t> jpeg, JpegInfo* info);
// True if a frame begins within entropy-coded data, which no decoder can mean.
bool HasFrameInScan(std::span<const uint8_t> jpeg);
// Returns what NVIDIA documents about the engine.
bool EngineDecodes(const JpegInfo& info);
// True if it is set up for regions and scales; it never does both at once.
bool EngineShapes(const DecodeOptions& options);
// A region is one of the whole image. `damaged`: the answer to corrupt data.
// Truncated data are decoded as far as they go, with gray below, if the setting
// "gray" is on.
cuda::NvjpegResult DecodePixels(std::span<const uint8_t> jpeg,
                                const DecodeOptions& options,
                                cuda::NvjpegResult damaged, Pixels* pixels);
// True if the destination is device memory of the right size.
bool HasRoom(const cuda::NvjpegImage& image, const Pixels& pixels,
             cuda::NvjpegFormat format);
void Store(const cuda::NvjpegImage& image, const Pixels& pixels,
           cuda::NvjpegFormat format);
// Writes the part of the last MCUs, of `mcu` pixels a side, that is outside of
// the image, for a format of one plane.
void StoreBeside(const cuda::NvjpegImage& image, const Pixels& pixels, int mcu);

}  // namespace leat::fake_cuda
