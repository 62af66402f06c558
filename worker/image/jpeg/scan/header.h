// SPDX-License-Identifier: Apache-2.0
//
// What can be said of a file's bytes without decoding them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace leat::worker {

// "a PNG image", "text", "zero bytes": for messages.
std::string LooksLike(std::span<const std::byte> bytes);

// The orientation (1 … 8) of the first EXIF segment; 1 if there is none, or it
// makes no sense.
int ExifOrientation(std::span<const std::byte> jpeg);

// The same of an EXIF block, which is a small TIFF file.
int TiffOrientation(std::span<const std::byte> exif);

// There is an end-of-image marker after the first scan's header: the file was
// not cut off.
bool HasEnd(std::span<const std::byte> jpeg);

}  // namespace leat::worker
