// SPDX-License-Identifier: Apache-2.0
//
// An image to decode, as nvJPEG wants it.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/nvjpeg.h"
#include "worker/gpu/device/jpeg_to_decode.h"

namespace leat::worker {

inline const unsigned char* DataOf(std::span<const std::byte> encoded) {
  return reinterpret_cast<const unsigned char*>(encoded.data());
}

inline cuda::NvjpegImage OutputOf(const JpegToDecode& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address.number()));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace leat::worker
