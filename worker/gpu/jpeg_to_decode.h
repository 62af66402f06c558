// SPDX-License-Identifier: Apache-2.0
//
// JpegToDecode: an image that nvJPEG decodes, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/nvjpeg.h"
#include "worker/gpu/decode_shape.h"

namespace leat::worker {

// Who decodes an image, and what of it.
struct NvjpegChoice {
  bool engines = false;  // else CUDA, the whole
  DecodeShape shape;
};

struct JpegToDecode {
  std::span<const std::byte> encoded;
  bool luma = false;  // one byte a pixel, else R, G, B
  NvjpegChoice choice;
  uint64_t address = 0;  // where the shape's pixels go, on the device
  size_t pitch = 0;
  // kRefused: for libjpeg-turbo; kFailed: if that finds it damaged.
  enum class Outcome : uint8_t { kDecoded, kRefused, kFailed };
  Outcome outcome = Outcome::kDecoded;
};

inline const unsigned char* DataOf(std::span<const std::byte> encoded) {
  return reinterpret_cast<const unsigned char*>(encoded.data());
}

inline cuda::NvjpegImage OutputOf(const JpegToDecode& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace leat::worker
