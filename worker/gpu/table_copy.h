// SPDX-License-Identifier: Apache-2.0
//
// Resampling tables as kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/gpu/fused_descriptor.h"
#include "worker/gpu/fused_layout.h"

namespace leat::worker {

// The entries and weights of a table, from input `first_input` on.
template <class Table>
FusedAxis CopyTable(const Table& table, bool transposed, bool reversed,
                    FusedEntry* entries, int16_t* weights) {
  const int count = table.size(), taps = table.max_taps();
  for (int i = 0; i < count; ++i) {
    const int from = reversed ? count - 1 - i : i;
    const auto& entry = table.entry(from);
    entries[i] = {entry.start - table.first_input(), entry.taps};
    const int16_t* of = table.weights(from);
    for (int t = 0; t < taps; ++t)
      weights[transposed ? t * count + i : i * taps + t] =
          t < entry.taps ? of[t] : int16_t{0};
  }
  return {.stride = taps, .bits = table.bits()};
}

// Writes both tables to `memory` from offset `at` on, and into `row`. The
// horizontal one holds the horizontal mirror already.
template <class Table>
void CopyTables(const Table& horizontal, const Table& vertical, bool mirror_y,
                std::byte* memory, uint64_t at, FusedRow* row) {
  const auto write = [&](const Table& table, bool transposed, bool reversed) {
    const uint64_t weights_at = at + EntryBytes(table.size());
    FusedAxis axis = CopyTable(table, transposed, reversed,
                               reinterpret_cast<FusedEntry*>(memory + at),
                               reinterpret_cast<int16_t*>(memory + weights_at));
    axis.entries_at = static_cast<uint32_t>(at);
    axis.weights_at = static_cast<uint32_t>(weights_at);
    at = weights_at + WeightBytes(table.size(), table.max_taps());
    return axis;
  };
  row->resampled = 1;
  row->horizontal = write(horizontal, true, false);
  row->vertical = write(vertical, false, mirror_y);
}

}  // namespace leat::worker
