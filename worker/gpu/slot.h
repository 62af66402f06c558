// SPDX-License-Identifier: Apache-2.0
//
// Slot: what a group needs on a GPU; allocated at start, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cuda/driver.h"
#include "worker/gpu/nvjpeg_slot.h"

namespace leat::worker {

// Of descriptors: as many rows go through a slot together as it has room for.
inline constexpr size_t kSlotBlockBytes = 20 << 20;

struct Slot {
  int index = 0;
  // Pinned: the descriptor block, and decoded pixels.
  std::span<std::byte> block, pixels;
  // On the device: the same, results, and images that nvJPEG decoded.
  uint64_t device_block = 0, device_pixels = 0;
  uint64_t device_outputs = 0, device_images = 0;
  cuda::Stream stream = nullptr;
  cuda::Event done = nullptr;
  std::unique_ptr<NvjpegSlot> nvjpeg;  // null: no nvJPEG
};

}  // namespace leat::worker
