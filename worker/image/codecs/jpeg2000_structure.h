// SPDX-License-Identifier: Apache-2.0
//
// What a JPEG 2000 file is made of, without decoding it: sizes, and how much
// memory and work OpenJPEG will take for it.
//
// OpenJPEG makes tables of tiles, precincts and code-blocks whose sizes the
// file's headers decide and no option bounds: some bytes can ask for gigabytes.
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
  // About what OpenJPEG allocates.
  uint64_t memory_bytes = 0;
  // About how many packets and code-blocks it goes through, of all tiles: a
  // packet need not have a byte in the file.
  uint64_t parts = 0;
};

// kDataLoss: damaged or cut off: the markers of all tile-parts are walked.
// kInvalidArgument: of a kind that is not supported.
absl::StatusOr<Jpeg2000Structure> ReadJpeg2000Structure(
    std::span<const std::byte> file);

}  // namespace leat::worker
