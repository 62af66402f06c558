// SPDX-License-Identifier: Apache-2.0
//
// BlockRunner: goes over blocks of which nothing is wanted but the DC
// coefficients, many at a time.
//
// Where a block ends cannot be foreseen, so that processors guess a branch
// there wrongly in most blocks. The runner has no such branch: it looks up some
// bits, and the entry says which table the next bits are for. It is as strict
// as DecodeBlock (blocks.h): what libjpeg warns of is refused.
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
  // Goes over `count` blocks, which begin with the first one of an MCU; `dc`
  // gets their DC coefficients, in the order of coding, null: nobody wants
  // them. False: a code is wrong; what `bits` then are means nothing. REQUIRES:
  // count is at most kMostMcus MCUs.
  bool Run(size_t count, ScanBits* bits, Predictors* predictors,
           int16_t* dc = nullptr);

 private:
  static constexpr size_t kMostBlocks = kMostMcus * kMaxMcuBlocks;
  bool RunOver(size_t count, ScanBits* bits);
  bool RunOut(size_t* state, unsigned at, ScanBits* bits);

  const FileScan* scan_ = nullptr;
  bool looks_over_ = false;
  // For each block its DC table and its AC table: the states of a run.
  std::array<const uint16_t*, 2 * kMostBlocks + 2> tables_{};
  // By state: the bits of the last entry, or kWhole and a DC difference.
  static constexpr uint32_t kWhole = 0x10000;
  std::array<uint32_t, 2 * kMostBlocks + 1> found_{};
};

}  // namespace leat::worker
