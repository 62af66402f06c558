// SPDX-License-Identifier: Apache-2.0
//
// The JPEG kernels: from the codes or the blocks of a JPEG to the pixels of a
// window, as libjpeg-turbo makes them on the host
// (worker/image/formulas/jpeg_pixel.h).
//
// Threads of the first kernels decode codes (codes.h, sync.h). A thread of the
// next one makes the 64 samples of a block; one of the last makes kJpegStrip
// pixels, one above the other, so that neighbouring threads have neighbouring
// columns. Images are trusted, codes and blocks are not: whatever their bytes
// are, nothing outside the image's memory is read or written.
//
// C++ and CUDA compile this file.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/gpu/kernels/codes.h"
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/sync.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/gpu/layout/launch_config.h"
#include "worker/image/formulas/jpeg_pixel.h"

namespace leat::worker {

inline constexpr uint32_t kJpegStrip = 4;
inline constexpr uint32_t kJpegThreads = 128;  // threads per block

// kCodes decodes codes that an index leads to; kGuess to kWrite those of a file
// without one.
enum class JpegKernel : uint8_t {
  kCodes,
  kGuess,
  kOver,
  kBack,
  kSum,
  kWrite,
  kSamples,
  kPixels
};
inline constexpr int kJpegKernelCount = 8;
// The launches for images of any kind, in order. Six passes follow the guess:
// photos needed at most four (decoding/jpeg_upload.cc).
inline constexpr JpegKernel kJpegLaunches[] = {
    JpegKernel::kCodes, JpegKernel::kGuess,   JpegKernel::kOver,
    JpegKernel::kBack,  JpegKernel::kOver,    JpegKernel::kBack,
    JpegKernel::kOver,  JpegKernel::kBack,    JpegKernel::kSum,
    JpegKernel::kWrite, JpegKernel::kSamples, JpegKernel::kPixels};
// Names in the kernel image.
inline constexpr const char* kJpegKernels[kJpegKernelCount] = {
    "leat_jpeg_codes",   "leat_jpeg_guess", "leat_jpeg_over",
    "leat_jpeg_back",    "leat_jpeg_sum",   "leat_jpeg_write",
    "leat_jpeg_samples", "leat_jpeg_pixels"};

// Returns the number of threads per image; 0: it does not need the kernel.
LEAT_PIXEL uint32_t JpegThreads(JpegKernel kernel, const DeviceJpeg& image) {
  if (kernel == JpegKernel::kCodes) return image.runs;
  if (kernel == JpegKernel::kSum) return image.segments > 0 ? 1 : 0;
  if (kernel != JpegKernel::kSamples && kernel != JpegKernel::kPixels)
    return image.segments;
  if (kernel == JpegKernel::kSamples)
    return image.columns * image.rows * image.blocks_of_mcu;
  const auto height = static_cast<uint32_t>(image.height);
  return static_cast<uint32_t>(image.width) *
         ((height + kJpegStrip - 1) / kJpegStrip);
}
// Returns the launch for images with at most `threads` each; the kernel's only
// parameter is the address of the first image, a uint64_t.
inline LaunchConfig JpegLaunch(uint32_t threads, uint32_t images) {
  LaunchConfig config;
  config.grid_x = (threads + kJpegThreads - 1) / kJpegThreads;
  config.grid_y = images;
  config.block_x = kJpegThreads;
  return config;
}

// Returns the pitch in samples: in luma's plane an MCU has `across` blocks per
// row.
LEAT_PIXEL int64_t JpegPitch(const DeviceJpeg& image, uint32_t component) {
  return int64_t{8} * image.columns *
         static_cast<uint32_t>(component == 0 ? image.across : 1);
}

// Makes the samples of block `thread`.
LEAT_PIXEL void JpegSamplesThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= JpegThreads(JpegKernel::kSamples, image)) return;
  const auto across = static_cast<uint32_t>(image.across);
  const uint32_t luma = across * static_cast<uint32_t>(image.down);
  const uint32_t mcu = thread / image.blocks_of_mcu;
  const uint32_t part = thread % image.blocks_of_mcu;
  uint32_t component = 0;
  uint64_t column = mcu % image.columns, row = mcu / image.columns;
  if (part < luma) {
    column = column * across + part % across;
    row = row * static_cast<uint32_t>(image.down) + part / across;
  } else {
    component = part - luma + 1;
  }
  const uint8_t* const blocks = AtAddress(image.blocks);
  int16_t block[64] = {};
  BlockFiller filler{reinterpret_cast<const uint32_t*>(AtAddress(image.steps)) +
                         64 * component,
                     block};
  if (image.code == BlockCode::kPlain) {
    WalkPlain(blocks + uint64_t{thread} * kPlainBytes, filler);
  } else {
    const auto* const offsets =
        reinterpret_cast<const uint32_t*>(AtAddress(image.offsets)) + thread;
    WalkBlock(image.code, blocks + offsets[0], blocks + offsets[1], filler);
  }
  bool exact = InverseDctColumns(block) && filler.fits;
  const int64_t pitch = JpegPitch(image, component);
  uint8_t* to =
      AtAddress(image.planes[component]) +
      8 * (static_cast<int64_t>(row) * pitch + static_cast<int64_t>(column));
  // Planes and pitches are multiples of eight.
  for (int y = 0; y < 8; ++y, to += pitch)
    *reinterpret_cast<uint64_t*>(to) = InverseDctRow(block + 8 * y, &exact);
  if (!exact) SetFault(image);
}

// A component's samples; those from (x, y) of the image on are held.
struct JpegPlane {
  const uint8_t* samples;
  int64_t pitch;
  int32_t x, y;

  LEAT_PIXEL int32_t At(int32_t column, int32_t row) const {
    return samples[(row - y) * pitch + column - x];
  }
};
LEAT_PIXEL JpegPlane JpegPlaneOf(const DeviceJpeg& image, uint32_t component) {
  const bool luma = component == 0;
  return {AtAddress(image.planes[component]), JpegPitch(image, component),
          luma ? image.held_x : image.held_x / image.across,
          luma ? image.held_y : image.held_y / image.down};
}

// Returns the chroma of pixel (x, y) of the image.
LEAT_PIXEL int32_t JpegChroma(const DeviceJpeg& image, const JpegPlane& plane,
                              int32_t x, int32_t y) {
  if (image.fancy == 0) return plane.At(x / image.across, y / image.down);
  const NearSamples column = SamplesOf(x, image.chroma_width);
  const NearSamples row = SamplesOf(y, image.chroma_height);
  if (image.down == 1)
    return FinishOneAxis(
        Weighted(plane.At(column.near, y), plane.At(column.far, y)), x);
  if (image.across == 1)
    return FinishOneAxis(Weighted(plane.At(x, row.near), plane.At(x, row.far)),
                         y);
  return FinishBothAxes(Weighted(Weighted(plane.At(column.near, row.near),
                                          plane.At(column.near, row.far)),
                                 Weighted(plane.At(column.far, row.near),
                                          plane.At(column.far, row.far))),
                        x);
}

// Makes kJpegStrip pixels of column thread % width of the window.
LEAT_PIXEL void JpegPixelsThread(const DeviceJpeg& image, uint32_t thread) {
  if (thread >= JpegThreads(JpegKernel::kPixels, image)) return;
  const auto width = static_cast<uint32_t>(image.width);
  const auto column = static_cast<int32_t>(thread % width);
  const auto first = static_cast<int32_t>(thread / width * kJpegStrip);
  const bool chroma = image.components == kJpegPlanes && image.gray == 0;
  const JpegPlane luma = JpegPlaneOf(image, 0);
  // If there is no chroma, nothing reads them.
  const JpegPlane blue = JpegPlaneOf(image, 1);
  const JpegPlane red = JpegPlaneOf(image, 2);
  for (int32_t k = first; k < image.height; ++k) {
    if (k == first + static_cast<int32_t>(kJpegStrip)) break;
    const int32_t x = image.x + column, y = image.y + k;
    const auto value = static_cast<uint8_t>(luma.At(x, y));
    const int64_t place = int64_t{k} * image.width + column;
    if (image.gray != 0) {
      AtAddress(image.pixels)[place] = value;
      continue;
    }
    const uint32_t pixel = chroma
                               ? RgbxOfYcc(value, JpegChroma(image, blue, x, y),
                                           JpegChroma(image, red, x, y))
                               : RgbxOf(value, value, value);
    *reinterpret_cast<uint32_t*>(AtAddress(image.pixels) + 4 * place) = pixel;
  }
}

// Runs thread `thread` of the image.
template <JpegKernel kKernel>
LEAT_PIXEL void JpegThread(uint64_t images, uint32_t thread, uint32_t index) {
  const DeviceJpeg& image =
      reinterpret_cast<const DeviceJpeg*>(AtAddress(images))[index];
  if (kKernel == JpegKernel::kCodes) {
    JpegCodesThread(image, thread);
  } else if (kKernel == JpegKernel::kGuess) {
    JpegGuessThread(image, thread);
  } else if (kKernel == JpegKernel::kOver || kKernel == JpegKernel::kBack) {
    JpegPassThread(image, thread, kKernel == JpegKernel::kOver ? 0 : 1);
  } else if (kKernel == JpegKernel::kSum) {
    JpegSumThread(image, thread);
  } else if (kKernel == JpegKernel::kWrite) {
    JpegWriteThread(image, thread);
  } else if (kKernel == JpegKernel::kSamples) {
    JpegSamplesThread(image, thread);
  } else {
    // This is a copy: for all the compiler knows, the stores could change the
    // image.
    const DeviceJpeg copy = image;
    JpegPixelsThread(copy, thread);
  }
}

}  // namespace leat::worker
