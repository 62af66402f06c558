// SPDX-License-Identifier: Apache-2.0
//
// JpegToDecode: an image that a device decodes, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/gpu/device/address.h"
#include "worker/gpu/layout/decode_shape.h"

namespace leat::worker {

// Who decodes an image, and what of it.
struct DecodeChoice {
  bool engines = false;  // else the device's processors, the whole
  DecodeShape shape;
};

struct JpegToDecode {
  std::span<const std::byte> encoded;
  bool luma = false;  // one byte a pixel, else R, G, B
  DecodeChoice choice;
  // Where the shape's pixels go. In the worker, rows and columns behind them
  // are free up to RoomOf(shape).
  DeviceAddress address;
  size_t pitch = 0;
  // kRefused: for libjpeg-turbo; kFailed: if that finds it damaged.
  enum class Outcome : uint8_t { kDecoded, kRefused, kFailed };
  Outcome outcome = Outcome::kDecoded;
};

}  // namespace leat::worker
