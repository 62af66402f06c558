// SPDX-License-Identifier: Apache-2.0
//
// Computes a block of Philox4x32-10 (philox.h), for every compiler and device.
#pragma once

#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat {

struct PhiloxWords {
  uint32_t word[4];
};

LEAT_PIXEL PhiloxWords PhiloxBlock(PhiloxWords counter, uint32_t key0,
                                   uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // the golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // the square root of 3, minus 1
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter.word[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter.word[2];
    counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

}  // namespace leat
