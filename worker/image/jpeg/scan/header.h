// SPDX-License-Identifier: Apache-2.0
//
// Facts about a file's bytes that need no decoding.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace leat::worker {

// Describes the bytes for messages: "a PNG image", "text", "zero bytes".
std::string LooksLike(std::span<const std::byte> bytes);

// Returns the orientation (1 … 8) of the first EXIF segment; 1 if there is none
// or its value is invalid.
int ExifOrientation(std::span<const std::byte> jpeg);

// The same for an EXIF block, which is a small TIFF file.
int TiffOrientation(std::span<const std::byte> exif);

// True if an end-of-image marker follows the first scan's header: the file was
// not cut off.
bool HasEnd(std::span<const std::byte> jpeg);

}  // namespace leat::worker
