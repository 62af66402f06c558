// SPDX-License-Identifier: Apache-2.0
//
// BlockRunner: skips blocks, many at a time, and decodes only their DC
// coefficients.
//
// The end of a block cannot be predicted, so in most blocks a processor would
// mispredict a branch there. The runner has no such branch: it looks up some
// bits, and the entry says which table the next bits are for. It is as strict
// as DecodeBlock (blocks.h): it refuses everything that libjpeg warns about.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/layout.h"

namespace leat::worker {

// Thread-compatible.
class BlockRunner {
 public:
  using Predictors = std::array<int32_t, kMaxJpegComponents>;
  static constexpr size_t kMostMcus = 16;

  // REQUIRES: `scan` and its tables live until the last Run.
  void Begin(const FileScan& scan);
  // Skips `count` blocks, which begin with the first one of an MCU. `dc`
  // receives their DC coefficients, in the order of coding; nullptr: they are
  // not wanted. Returns false if a code is wrong; `bits` is then unspecified.
  // REQUIRES: count is at most kMostMcus MCUs.
  bool Run(size_t count, ScanBits* bits, Predictors* predictors,
           int16_t* dc = nullptr);

 private:
  static constexpr size_t kMostBlocks = kMostMcus * kMaxMcuBlocks;
  bool RunOver(size_t count, ScanBits* bits);
  bool RunOut(size_t* state, unsigned at, ScanBits* bits);

  const FileScan* scan_ = nullptr;
  bool looks_over_ = false;
  // The DC table and the AC table of each block: the states of a run.
  std::array<const uint16_t*, 2 * kMostBlocks + 2> tables_{};
  // For each state the bits from its last entry on.
  std::array<uint64_t, 2 * kMostBlocks + 1> found_{};
};

}  // namespace leat::worker
