// SPDX-License-Identifier: Apache-2.0
//
// Slot: a group's resources on a GPU; allocated at startup, used again and
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "worker/gpu/device/address.h"
#include "worker/gpu/device/image_decoder.h"
#include "worker/gpu/device/queue.h"

namespace leat::worker {

// The room for descriptors, which bounds the rows of a slot.
inline constexpr size_t kSlotBlockBytes = 20 << 20;

struct Slot {
  int index = 0;
  // Pinned, if the driver allows it: the descriptor block, and decoded pixels.
  std::span<std::byte> block, pixels;
  // On the device: the same, results, and images made there by the decoder or
  // from coefficients, with the working memory for that.
  DeviceAddress device_block, device_pixels;
  DeviceAddress device_outputs, device_images;
  uint64_t image_bytes = 0;  // of device_images
  // Holds all work of the slot's groups. Its mark is the end of the last group.
  std::unique_ptr<DeviceQueue> queue;
  std::unique_ptr<ImageDecoder> decoder;  // nullptr: the device has none
};

}  // namespace leat::worker
