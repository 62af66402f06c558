// SPDX-License-Identifier: Apache-2.0
//
// An image to decode, in nvJPEG's types, and parameters that turn no image.
#pragma once

#include <cstddef>
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

inline cuda::NvjpegImage OutputOf(const JpegToDecode& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address.number()));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace leat::worker
