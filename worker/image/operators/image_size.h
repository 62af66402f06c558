// SPDX-License-Identifier: Apache-2.0
//
// Reads what the header of an encoded image says, of any size: nothing is
// decoded.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "core/tensor/image_size.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {

// Errors: of FindCodec; kDataLoss: damaged or cut off.
absl::StatusOr<ImageHeader> ImageHeaderOf(std::span<const std::byte> file,
                                          const ImageFormats& formats);

// Returns the size of an encoded image as it is shown: EXIF's orientation is
// applied. kInvalidArgument: no image of a known format. kDataLoss: damaged or
// cut off.
absl::StatusOr<ImageSize> SizeOfImage(std::span<const std::byte> file);

}  // namespace leat::worker
