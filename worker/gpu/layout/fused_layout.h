// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a block's parts, shared by FusedProgram and FusedGroup.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/gpu/layout/fused_descriptor.h"

namespace leat::worker {

inline uint64_t Aligned(uint64_t bytes) {
  return (bytes + kFusedAlignment - 1) / kFusedAlignment * kFusedAlignment;
}

inline uint64_t EntryBytes(int64_t count) {
  return Aligned(static_cast<uint64_t>(count) * sizeof(FusedEntry));
}
inline uint64_t WeightBytes(int64_t count, int64_t taps) {
  return Aligned(static_cast<uint64_t>(count * taps) * sizeof(int16_t));
}
// Returns the bytes of a row's tables: the entries and weights of both axes.
inline uint64_t TableBytes(int64_t width, int64_t taps_across, int64_t height,
                           int64_t taps_down) {
  return EntryBytes(width) + WeightBytes(width, taps_across) +
         EntryBytes(height) + WeightBytes(height, taps_down);
}

}  // namespace leat::worker
