// SPDX-License-Identifier: Apache-2.0
//
// An image's data for the JPEG kernels (layout/jpeg_descriptor.h), as it lies
// in memory:
//
//   payload   on the host, then copied to the device:
//             offsets of blocks | steps of three components | blocks
//             or, where the device decodes the codes:
//             DeviceScan | steps | tables of codes | runs | data of the scan
//   image     on the device alone: pixels | planes of samples
//             Blocks that the device decodes lie where the pixels will be:
//             all samples are made before the first pixel. Behind the planes
//             is the working memory of a file without an index (jpeg_sync.h).
//
// Both must be aligned to kJpegAlignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/gpu/device/address.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/image/jpeg/forms/block_reader.h"
#include "worker/image/jpeg/forms/device_codes.h"

namespace leat::worker {

inline constexpr size_t kJpegAlignment = 64;

// Returns the size of the image; it is known before the blocks are.
uint64_t JpegImageBytes(const BlockWindow& window);

size_t JpegPayloadBytes(const JpegBlocks& blocks);
// REQUIRES: `to` has JpegPayloadBytes(blocks) bytes.
void WriteJpegPayload(const JpegBlocks& blocks, std::byte* to);

// Describes an image whose payload and image will be at these addresses.
DeviceJpeg DescribeJpeg(const JpegBlocks& blocks, DeviceAddress payload,
                        DeviceAddress image);

// Addresses on the device for an image of codes.
struct CodesAddresses {
  DeviceAddress payload, image;
  // The word there is 0 before the launches, and not 0 after them if libjpeg has
  // to decode the image.
  DeviceAddress fault;
  // The kernels leave their CodePlaces there (DeviceScan); no address: they
  // leave none.
  DeviceAddress places = {};
};

// The same for codes.
uint64_t CodesImageBytes(const BlockWindow& window, size_t file_bytes);
size_t CodesPayloadBytes(const DeviceCodes& codes);
void WriteCodesPayload(const DeviceCodes& codes, const CodesAddresses& at,
                       std::byte* to);
DeviceJpeg DescribeCodes(const DeviceCodes& codes, const CodesAddresses& at);

// True if the kernels' bodies, run on this host, make the same pixels as the
// loaded libjpeg, for small pictures of every kind that they are given. Checked
// at the first call, in some milliseconds; false: libjpeg has to decode all
// files. Thread-safe.
bool KernelsHaveLibjpegsPixels();

}  // namespace leat::worker
