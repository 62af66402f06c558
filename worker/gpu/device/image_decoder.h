// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder: decodes JPEGs into a device's memory, for one slot.
//
// What is decoded by whom is a function of the image and of the shapes that its
// row bears: never of load, of memory or of the other images of a call. So one
// kind of device makes the same pixels wherever and whenever. An image that the
// decoder refuses, or fails on, is the caller's; it never fails others
// (decode_fault.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/gpu/device/jpeg_to_decode.h"
#include "worker/gpu/layout/decode_shape.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// Thread-compatible but for Takes, Choose and device_bytes.
class ImageDecoder {
 public:
  // REQUIRES: none of its work is on the queue any more.
  virtual ~ImageDecoder() = default;

  // What it is called in messages.
  virtual const char* name() const = 0;

  // Whether images of this kind are given to it. All others are
  // libjpeg-turbo's, as in class exact. Thread-safe.
  virtual bool Takes(const JpegDecoder::Header& header) const = 0;

  // The first shape that the engines take, or else the device's processors and
  // the last shape, which is the whole image. Thread-safe; makes the device
  // current. kUnavailable: the decoder fails.
  virtual absl::StatusOr<DecodeChoice> Choose(
      std::span<const std::byte> encoded, bool luma,
      std::span<const DecodeShape> shapes) = 0;

  // Puts the decoding on the queue. What comes later on the queue sees the
  // pixels.
  //
  // REQUIRES: the host has waited for all that reads or writes the images'
  // memory, and for all of an earlier call. The queue's order is not enough:
  // engines begin without regard to what is on it.
  //
  // images[i].outcome says what came of it. kResourceExhausted: no memory for
  // these images. Others: error.h.
  virtual absl::Status Decode(std::span<JpegToDecode> images) = 0;

  // The bytes of the device's memory that it holds now. Thread-safe.
  virtual uint64_t device_bytes() const = 0;
};

}  // namespace leat::worker
