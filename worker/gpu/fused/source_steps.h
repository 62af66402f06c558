// SPDX-License-Identifier: Apache-2.0
//
// The fused kernel (worker/gpu/kernels) reads a row's decoded pixels by an
// address and three steps: to the next pixel along x, along y, and to the next
// channel. SetSource computes them for a part of an image that may be turned,
// mirrored and reversed in its channels.
//
// SetSource cannot fail: the group that computes the row has checked the part.
#pragma once

#include <cstdint>

#include "worker/gpu/device/address.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

// Decoded pixels of a stored image, as they will lie in the device's memory.
struct FusedSource {
  DeviceAddress address;  // of the first held pixel
  StoredRect held;  // in the stored image, at the size at which it was decoded
  int64_t pitch = 0;  // bytes from row to row
  int32_t pixel_bytes = 3;
  // Bytes from channel to channel: 1, or a plane's size if they are planar.
  int64_t channel_bytes = 1;
};

struct SourceView {
  const Orientation& orientation;
  StoredSize stored;    // the size at which it was decoded
  TurnedRect part;      // of the turned image
  bool back_x, back_y;  // the part is mirrored by its steps
  bool backwards;       // reverses the channels
};

// Sets the source and its steps. REQUIRES: `source` holds the part.
void SetSource(const SourceView& view, const FusedSource& source,
               FusedRow* row);

}  // namespace leat::worker
