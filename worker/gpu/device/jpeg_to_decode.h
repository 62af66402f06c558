// SPDX-License-Identifier: Apache-2.0
//
// JpegToDecode: an image that a device decodes, and the outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/gpu/device/address.h"
#include "worker/gpu/layout/decode_shape.h"

namespace leat::worker {

// The part of an image that is decoded, and the hardware that decodes it.
struct DecodeChoice {
  bool engines = false;  // else the device's processors, the whole image
  DecodeShape shape;
  // The decoder sets it: engines decode images of one number together.
  uint8_t batch = 0;
};

struct JpegToDecode {
  std::span<const std::byte> encoded;
  bool luma = false;  // one byte per pixel, else R, G, B
  DecodeChoice choice;
  // The memory for the shape's pixels. In the worker, the rows and columns
  // after them are free up to RoomOf(shape).
  DeviceAddress address;
  size_t pitch = 0;
  // kRefused: libjpeg-turbo decodes it; kFailed: it does if it finds damage.
  enum class Outcome : uint8_t { kDecoded, kRefused, kFailed };
  Outcome outcome = Outcome::kDecoded;
};

}  // namespace leat::worker
