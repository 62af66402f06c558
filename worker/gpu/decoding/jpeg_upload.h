// SPDX-License-Identifier: Apache-2.0
//
// What the JPEG kernels are given of an image (layout/jpeg_descriptor.h), as it
// lies in memory:
//
//   payload   on the host, then copied to the device:
//             offsets of blocks | steps of three components | blocks
//   image     on the device alone: pixels | planes of samples
//
// Both have to be aligned to kJpegAlignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/gpu/device/address.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/image/jpeg/forms/block_reader.h"

namespace leat::worker {

inline constexpr size_t kJpegAlignment = 64;

// Known before the blocks are.
uint64_t JpegImageBytes(const BlockWindow& window);

size_t JpegPayloadBytes(const JpegBlocks& blocks);
// REQUIRES: JpegPayloadBytes(blocks) are at `to`.
void WriteJpegPayload(const JpegBlocks& blocks, std::byte* to);

// Of an image whose payload and image will be there.
DeviceJpeg DescribeJpeg(const JpegBlocks& blocks, DeviceAddress payload,
                        DeviceAddress image);

// Whether the kernels' bodies, run on this host, make the pixels of the libjpeg
// that is loaded: of small pictures of every kind that they are given. Found
// out at the first call, in some milliseconds; false: libjpeg has to decode all
// files. Thread-safe.
bool KernelsHaveLibjpegsPixels();

}  // namespace leat::worker
