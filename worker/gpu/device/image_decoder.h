// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder: decodes JPEGs into a device's memory, for one slot.
//
// How an image is decoded is a function of the image and of the shapes that its
// row permits, never of load, of memory or of the other images of a call. So
// one kind of device makes the same pixels wherever and whenever. An image that
// the decoder refuses, or fails on, goes back to the caller; it never makes
// others fail (decode_fault.h).
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

// Thread-compatible, except Takes, Choose and device_bytes.
class ImageDecoder {
 public:
  // REQUIRES: the queue holds none of its work.
  virtual ~ImageDecoder() = default;

  // Returns its name for messages.
  virtual const char* name() const = 0;

  // True if the decoder is given images of this kind. All others are decoded by
  // libjpeg-turbo, as in class exact. Thread-safe.
  virtual bool Takes(const JpegDecoder::Header& header) const = 0;

  // Returns the first shape that the engines take, or else the device's
  // processors and the last shape, which is the whole image. Thread-safe; makes
  // the device current. kUnavailable: the decoder fails.
  virtual absl::StatusOr<DecodeChoice> Choose(
      std::span<const std::byte> encoded, bool luma,
      std::span<const DecodeShape> shapes) = 0;

  // Puts the decoding on the queue. Later work on the queue sees the pixels.
  //
  // REQUIRES: the host has waited for all work that reads or writes the images'
  // memory, and for all work of an earlier call. The queue's order is not
  // enough: engines start without regard to the queue.
  //
  // Sets images[i].outcome. kResourceExhausted: no memory for these images.
  // Others: error.h.
  virtual absl::Status Decode(std::span<JpegToDecode> images) = 0;

  // Returns how many bytes of the device's memory it holds now. Thread-safe.
  virtual uint64_t device_bytes() const = 0;
};

}  // namespace leat::worker
