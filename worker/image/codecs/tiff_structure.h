// SPDX-License-Identifier: Apache-2.0
//
// What a TIFF file asks of libtiff, looked at before libtiff is asked.
//
// libtiff copies the data of every tag, and tags, strips and tiles of a file
// may all name the same bytes: so a small file can ask for any amount of memory
// and work. A sound file names its bytes about once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "worker/image/base/limits.h"

namespace leat::worker {

// kDataLoss: the first directory has more tags than images have, or they name
// more bytes than the file has. A directory that cannot be read is libtiff's to
// complain about.
absl::Status CheckTiffDirectory(std::span<const std::byte> file);

// Strips or tiles: `count` of them, each of `rows` rows of `row_bytes` bytes.
// kResourceExhausted: to unpack all of them is over max_unpacked_bytes, where
// short rows and small parts count more than their bytes.
absl::Status CheckTiffWork(uint64_t count, uint64_t rows, uint64_t row_bytes,
                           const ImageLimits& limits);

// A strip or tile that holds a JPEG stream. kInvalidArgument: of several scans,
// whose number nothing would bound. Damage is the decoder's to find.
absl::Status CheckTiffJpeg(std::span<const std::byte> stream);

}  // namespace leat::worker
