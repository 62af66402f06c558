// SPDX-License-Identifier: Apache-2.0
//
// HighwayHash-64 (Alakuijala, Cox, Wassenberg: "Fast keyed hash/pseudo-random
// function using SIMD multiply and permute", arXiv 1612.06257), portable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::worker {

uint64_t HighwayHash64(const std::array<uint64_t, 4>& key,
                       std::span<const std::byte> bytes);

}  // namespace leat::worker
