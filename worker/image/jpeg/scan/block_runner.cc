// SPDX-License-Identifier: Apache-2.0
//
// Example: the codes of a block of luma have a DC difference of 3 bits, three
// AC coefficients and the end. The DC table's entry takes the code and the
// difference, and turns to state 1; there one entry takes two coefficients, and
// another one the third and the end, which turns to state 2, the next block's
// DC table. After three entries bits are refilled. After the last block comes a
// table whose entries take nothing, so that a run may go on for some steps.
#include "worker/image/jpeg/scan/block_runner.h"

#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

constexpr SkipTable kStop{};

// Refill provides enough bits for this many entries.
constexpr int kSteps = 3;
static_assert(kSteps * kMostSkipped <= 56);

// AC coefficients per block.
constexpr unsigned kAcs = DCTSIZE2 - 1;

}  // namespace

void BlockRunner::Begin(const FileScan& scan) {
  scan_ = &scan;
  const size_t blocks = scan.layout.blocks;
  // A table that the file before had may look over, and another one not.
  looks_over_ = true;
  for (size_t i = 0; i < blocks; ++i)
    looks_over_ =
        looks_over_ && scan.dc[i]->looks_over() && scan.ac[i]->looks_over();
  if (!looks_over_) return;
  for (size_t i = 0; i < kMostMcus * blocks; ++i) {
    tables_[2 * i] = scan.dc[i % blocks]->over();
    tables_[2 * i + 1] = scan.ac[i % blocks]->over();
  }
}

bool BlockRunner::Run(size_t count, ScanBits* bits, Predictors* predictors,
                      int16_t* dc) {
  const FileScan& scan = *scan_;
  if (looks_over_ && !RunOver(count, bits)) return false;
  for (size_t i = 0, block = 0; i < count; ++i) {
    int32_t* const predictor = &(*predictors)[scan.layout.component_of[block]];
    if (!looks_over_) {
      if (!SkipBlock(bits, *scan.dc[block], *scan.ac[block], predictor))
        return false;
    } else {
      ScanBits found{.bits = found_[2 * i], .count = 32};
      if (!TakeDc(found, *scan.dc[block], predictor)) return false;
    }
    if (dc != nullptr) dc[i] = static_cast<int16_t>(*predictor);
    if (++block == scan.layout.blocks) block = 0;
  }
  return true;
}

bool BlockRunner::RunOver(size_t count, ScanBits* bits) {
  const size_t end = 2 * count;
  const uint16_t* const behind = tables_[end];
  tables_[end] = kStop.data();
  ScanBits scan = *bits;
  size_t state = 0;
  const uint16_t* table = tables_[0];
  unsigned at = 0;  // AC coefficients of the block
  bool sound = true;
  while (sound && state != end) {
    scan.Refill();
    uint64_t next = scan.bits;
    unsigned taken = 0;
    bool over = true;
    for (int step = 0; step < kSteps; ++step) {
      const unsigned entry = table[next >> (64 - kSkipBits)];
      const uint16_t* const other = tables_[state + 1];
      const unsigned far = at + SkipFar(entry);
      if (far >= kAcs) {
        over = false;
        break;
      }
      found_[state] = next;
      next <<= SkipLength(entry);
      taken += SkipLength(entry);
      // Neither condition is compiled to a branch.
      const bool turns = (entry & kSkipTurns) != 0;
      table = turns ? other : table;
      at = turns ? 0 : far;
      state += entry / kSkipTurns;
    }
    scan.bits = next;
    scan.count -= static_cast<int>(taken);
    if (over) continue;
    sound = RunOut(&state, at, &scan);
    table = tables_[state];
    at = 0;
  }
  tables_[end] = behind;
  bits->ContinueAt(scan);
  return sound;
}

// Decodes the rest of a block with a code that has no entry.
bool BlockRunner::RunOut(size_t* state, unsigned at, ScanBits* bits) {
  const size_t block = *state / 2 % scan_->layout.blocks;
  if (*state % 2 == 0) {
    bits->Refill();
    found_[*state] = bits->bits;
    int32_t difference = 0;
    if (!TakeDc(*bits, *scan_->dc[block], &difference)) return false;
  }
  *state = (*state | 1) + 1;
  return SkipAc(bits, *scan_->ac[block], at + 1);
}

}  // namespace leat::worker
