// SPDX-License-Identifier: Apache-2.0
//
// Checks of how much memory and work a TIFF file would cost libtiff, made
// before libtiff reads it.
//
// libtiff copies the data of every tag, and tags, strips and tiles of a file
// may all name the same bytes: so a small file can demand any amount of memory
// and work. A sound file names its bytes about once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "worker/image/base/limits.h"

namespace leat::worker {

// kDataLoss: the first directory has more tags than images have, or they name
// more bytes than the file has. OK if the directory cannot be read: libtiff
// then reports that.
absl::Status CheckTiffDirectory(std::span<const std::byte> file);

// Strips or tiles: `count` of them, each with `rows` rows of `row_bytes` bytes.
// kResourceExhausted: unpacking all of them takes more than max_unpacked_bytes,
// where short rows and small parts count more than their bytes.
absl::Status CheckTiffWork(uint64_t count, uint64_t rows, uint64_t row_bytes,
                           const ImageLimits& limits);

// Checks a strip or tile that holds a JPEG stream. kInvalidArgument: it has
// several scans, whose number would be unbounded. kDataLoss: bytes that are no
// marker, which libjpeg would skip, could hide them. The decoder finds other
// damage.
absl::Status CheckTiffJpeg(std::span<const std::byte> stream);

}  // namespace leat::worker
