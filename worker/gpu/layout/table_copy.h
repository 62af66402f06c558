// SPDX-License-Identifier: Apache-2.0
//
// Copies resampling tables into the layout that kernels read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/gpu/layout/fused_layout.h"
#include "worker/image/resample/dali_table.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

// Copies the entries and weights of a table, counted from input `first_input`.
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
// horizontal one already includes the horizontal mirror.
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
  row->sampling = FusedSampling::kTables;
  row->horizontal = write(horizontal, true, false);
  row->vertical = write(vertical, false, mirror_y);
}

// Returns the bytes of both tables of rule "dali".
inline uint64_t DaliTableBytes(const DaliTable& across, const DaliTable& down,
                               ImageSize size) {
  const auto bytes = [](int64_t count, int64_t taps) {
    return Aligned(static_cast<uint64_t>(count) * sizeof(int32_t)) +
           Aligned(static_cast<uint64_t>(count * taps) * sizeof(float));
  };
  return bytes(size.width, across.taps()) + bytes(size.height, down.taps());
}

// Makes both tables of a view by rule "dali", whose axes are set; returns the
// part of the source that they read.
inline Rect BuildDaliTables(const View& view, DaliTable* across,
                            DaliTable* down) {
  const bool across_first = AcrossFirst(*across, *down);
  const Rect &after = view.after(), &from = view.before();
  across->Build(!across_first, false, static_cast<int>(after.x),
                static_cast<int>(after.width), view.mirror_x());
  down->Build(across_first, true, static_cast<int>(after.y),
              static_cast<int>(after.height), false);
  return {from.x + across->first_input(), from.y + down->first_input(),
          across->end_input() - across->first_input(),
          down->end_input() - down->first_input()};
}

// Does for DALI's tables what CopyTables does for others.
inline void CopyDaliTables(const DaliTable& across, const DaliTable& down,
                           bool mirror_y, std::byte* memory, uint64_t at,
                           FusedRow* row) {
  const auto write = [&](const DaliTable& table, bool reversed) {
    const int count = table.size(), taps = table.taps();
    const uint64_t weights_at =
        at + Aligned(static_cast<uint64_t>(count) * sizeof(int32_t));
    auto* const starts = reinterpret_cast<int32_t*>(memory + at);
    auto* const weights = reinterpret_cast<float*>(memory + weights_at);
    for (int i = 0; i < count; ++i) {
      const int from = reversed ? count - 1 - i : i;
      starts[i] =
          table.starts()[static_cast<size_t>(from)] - table.first_input();
      std::copy_n(table.weights() + static_cast<ptrdiff_t>(from) * taps, taps,
                  weights + static_cast<ptrdiff_t>(i) * taps);
    }
    const FusedAxis axis{.entries_at = static_cast<uint32_t>(at),
                         .weights_at = static_cast<uint32_t>(weights_at),
                         .stride = taps,
                         .inputs = table.end_input() - table.first_input()};
    at = weights_at + Aligned(static_cast<uint64_t>(count) *
                              static_cast<uint64_t>(taps) * sizeof(float));
    return axis;
  };
  row->sampling = AcrossFirst(across, down) ? FusedSampling::kDaliAcrossFirst
                                            : FusedSampling::kDaliDownFirst;
  row->horizontal = write(across, false);
  row->vertical = write(down, mirror_y);
}

}  // namespace leat::worker
