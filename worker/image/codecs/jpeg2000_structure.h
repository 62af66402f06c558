// SPDX-License-Identifier: Apache-2.0
//
// Jpeg2000Structure: the sizes in a JPEG 2000 file, and the memory and work
// that OpenJPEG will need for it, found without decoding.
//
// OpenJPEG makes tables of tiles, precincts and code-blocks whose sizes the
// file's headers decide and no option bounds: a few bytes can demand gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace leat::worker {

struct Jpeg2000Structure {
  uint64_t width = 0, height = 0;          // of the first component
  uint64_t max_width = 0, max_height = 0;  // of any
  int components = 0;
  bool boxed = false;    // a JP2 file, not a bare codestream
  bool palette = false;  // components are indices
  uint64_t columns = 0;  // of the palette: components of the decoded image
  // An estimate of the memory that OpenJPEG allocates.
  uint64_t memory_bytes = 0;
  // An estimate of its work: the packets and code-blocks in all tiles, which
  // need not have a byte in the file, and the places where it looks for packets.
  uint64_t parts = 0;
};

// Walks the markers of all tile-parts. kDataLoss: damaged or cut off.
// kInvalidArgument: a kind that is not supported.
absl::StatusOr<Jpeg2000Structure> ReadJpeg2000Structure(
    std::span<const std::byte> file);

}  // namespace leat::worker
