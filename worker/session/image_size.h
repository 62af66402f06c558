// SPDX-License-Identifier: Apache-2.0
//
// SizeOfImage reads sizes of images for conditions of listings.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "core/tensor/image_size.h"

namespace leat::worker {

// Returns the size of an encoded image as it is shown, from its header: EXIF's
// orientation is applied. kInvalidArgument: no image of a known format.
// kDataLoss: damaged or cut off.
absl::StatusOr<ImageSize> SizeOfImage(std::span<const std::byte> file);

}  // namespace leat::worker
