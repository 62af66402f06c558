// SPDX-License-Identifier: Apache-2.0
//
// An image to decode, in nvJPEG's types: its output, its parameters, and the
// batch that it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/device/jpeg_to_decode.h"

namespace leat::worker {

inline const unsigned char* DataOf(std::span<const std::byte> encoded) {
  return reinterpret_cast<const unsigned char*>(encoded.data());
}

// Makes nvJPEG ignore EXIF orientation, because Leat turns images itself. What
// nvJPEG does by default is not documented.
inline absl::Status SetUpright(const cuda::Nvjpeg& nvjpeg,
                               cuda::NvjpegParams params) {
  if (nvjpeg.DecodeParamsSetExifOrientation == nullptr) return absl::OkStatus();
  return cuda::Check(nvjpeg.DecodeParamsSetExifOrientation(
                         params, cuda::NvjpegOrientation::kNormal),
                     "nvjpegDecodeParamsSetExifOrientation");
}

// Sets an image's shape and colours.
inline cuda::NvjpegResult SetParams(const cuda::Nvjpeg& nvjpeg,
                                    cuda::NvjpegParams params, bool luma,
                                    const DecodeShape& shape) {
  using cuda::NvjpegResult;
  const StoredRect region = shape.cut ? shape.region : StoredRect{0, 0, -1, -1};
  NvjpegResult result = nvjpeg.DecodeParamsSetOutputFormat(
      params, luma ? cuda::NvjpegFormat::kY : cuda::NvjpegFormat::kRgbi);
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg.DecodeParamsSetROI(
        params, static_cast<int>(region.x), static_cast<int>(region.y),
        static_cast<int>(region.width), static_cast<int>(region.height));
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg.DecodeParamsSetScaleFactor(
        params, static_cast<cuda::NvjpegScale>(shape.halvings));
  return result;
}

// The batches of the engines: one for each chroma sampling, and one for luma,
// which needs no chroma. nvImageCodec keeps from batches of several samplings
// whose chroma is interpolated, on GPUs with several engines.
inline constexpr uint8_t kNvjpegLumaBatch = 4;
inline constexpr uint8_t kNvjpegBatches = 5;
inline uint8_t NvjpegBatchOf(bool luma, cuda::NvjpegSubsampling sampling) {
  if (luma) return kNvjpegLumaBatch;
  switch (sampling) {
    case cuda::NvjpegSubsampling::k422:
      return 1;
    case cuda::NvjpegSubsampling::k420:
      return 2;
    case cuda::NvjpegSubsampling::k440:
      return 3;
    default:
      return 0;  // 4:4:4
  }
}

inline cuda::NvjpegImage OutputOf(const JpegToDecode& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address.number()));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace leat::worker
