// SPDX-License-Identifier: Apache-2.0
//
// ImageLimits: how much work and memory one image or one row may take on a
// thread.
#pragma once

#include <cstdint>

#include "worker/image/base/formats.h"

namespace leat::worker {

class ScratchBudget;
class WholeDecodes;

struct ImageLimits {
  uint64_t max_pixels = 100'000'000;  // of a stored image
  uint32_t max_side = 65'500;
  // Bounds on work, so that no file occupies a thread for long: scans of a
  // JPEG, its scans times its pixels, and the bytes in all strips or tiles of a
  // TIFF.
  int max_scans = 64;
  uint64_t max_scan_pixels = 2'000'000'000;
  uint64_t max_unpacked_bytes = 2ull << 30;
  uint64_t max_scratch_bytes = 2ull << 30;  // per row, on one thread
  // The memory that a thread keeps between rows, and that a row may use without
  // taking from the budget: an image of 40 megapixels.
  uint64_t kept_scratch_bytes = 128ull << 20;
  // The working memory beyond that, shared by all threads; nullptr: unbounded.
  // Outlives every Scratch.
  ScratchBudget* budget = nullptr;
  // Counts the images that were to be reduced but whose format has no scales;
  // nullptr: not counted. Outlives every Scratch.
  WholeDecodes* whole_decodes = nullptr;
  // The formats are set per worker; the rest is fixed per release.
  ImageFormats formats;
};

}  // namespace leat::worker
