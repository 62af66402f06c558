// SPDX-License-Identifier: Apache-2.0
#include "core/random/philox.h"

#include "core/random/permutation.h"
#include "core/random/philox_block.h"

namespace leat {
namespace {

// Distinguishes a sample's draws from the permutations' keys ("draw").
constexpr uint64_t kDrawSalt = 0x64726177;

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) {
  const PhiloxWords block = PhiloxBlock(
      {{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

// The counter is (block, op, sample): no two draws of an epoch share one.
SampleRng::SampleRng(uint64_t seed, uint64_t epoch, uint64_t sample,
                     uint32_t op)
    : counter_{0, op, static_cast<uint32_t>(sample),
               static_cast<uint32_t>(sample >> 32)} {
  const uint64_t key = MixKey(seed, epoch, kDrawSalt);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

uint32_t SampleRng::NextU32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double SampleRng::NextDouble() {
  const uint64_t high = NextU32();
  const uint64_t low = NextU32();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1.0p-53;
}

}  // namespace leat
