// SPDX-License-Identifier: Apache-2.0
//
// ImageLimits: how much work and memory one image, and one row, may take on a
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
  // Work, so that no file keeps a thread for long: scans of a JPEG, scans times
  // pixels of it, and what all strips or tiles of a TIFF hold.
  int max_scans = 64;
  uint64_t max_scan_pixels = 2'000'000'000;
  uint64_t max_unpacked_bytes = 2ull << 30;
  uint64_t max_scratch_bytes = 2ull << 30;  // of one row, on one thread
  // What a thread holds between rows, and a row may have without asking the
  // budget: an image of 40 megapixels.
  uint64_t kept_scratch_bytes = 128ull << 20;
  // The working memory of all threads beside that; null: unbounded. Outlives
  // every Scratch.
  ScratchBudget* budget = nullptr;
  // Counts the images that were to be reduced and have no scales; null: nobody
  // does. Outlives every Scratch.
  WholeDecodes* whole_decodes = nullptr;
  // The worker's own, where the rest is the release's.
  ImageFormats formats;
};

}  // namespace leat::worker
