// SPDX-License-Identifier: Apache-2.0
//
// The fused kernel: from decoded pixels to every field of a batch, in one
// launch for all rows.
//
// A thread computes a strip of pixels (strips.h), and the elements of each
// field that depend on it.
//
// C++ and CUDA compile this file. Blocks come from FusedGroup and are trusted.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/gpu/kernels/block_access.h"
#include "worker/gpu/kernels/strips.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/gpu/layout/launch_config.h"
#include "worker/image/formulas/pixel.h"

namespace leat::worker {

inline constexpr uint32_t kFusedBlock = 128;  // threads

// Names in the kernel image: for views of one channel and of three; then the
// same for programs in which some views have rule "dali".
inline constexpr char kFusedKernel1[] = "leat_fused_1";
inline constexpr char kFusedKernel3[] = "leat_fused_3";
inline constexpr const char* kFusedKernels[] = {
    kFusedKernel1, kFusedKernel3, "leat_fused_dali_1", "leat_fused_dali_3"};

// Returns the launch for all views of all rows, each with at most `strips`; the
// kernel's only parameter is the block's address, a uint64_t.
inline LaunchConfig FusedLaunch(uint32_t strips, uint32_t slices) {
  LaunchConfig config;
  config.grid_x = (strips + kFusedBlock - 1) / kFusedBlock;
  config.grid_y = slices;
  config.block_x = kFusedBlock;
  return config;
}

LEAT_PIXEL void StoreTabled(const uint8_t* table, uint32_t element,
                            uint32_t bytes, uint8_t* to) {
  const uint8_t* const from = table + element * bytes;
  if (bytes == 4)
    StoreElement<uint32_t>(from, to);
  else if (bytes == 2)
    StoreElement<uint16_t>(from, to);
  else if (bytes == 1)
    *to = *from;
  else
    StoreElement<uint64_t>(from, to);
}

template <int kChannels>
LEAT_PIXEL void StoreStrip(const uint8_t* block, const FusedField& field,
                           uint32_t x, uint32_t y, uint32_t count,
                           const uint8_t strip[kStripRows][kChannels],
                           uint8_t* output) {
  uint8_t* to = output + y * field.out_y + x * field.out_x;
  uint32_t element = y * field.table_y + x * field.table_x;
  for (uint32_t k = 0; k < kStripRows; ++k) {
    if (k >= count) break;
    for (int c = 0; c < kChannels; ++c) {
      if (field.kind == FusedKind::kBytes)
        to[c * field.out_c] = strip[k][c];
      else
        StoreTabled(block + field.at, element + c * field.table_c + strip[k][c],
                    field.element_bytes, to + c * field.out_c);
    }
    to += field.out_y;
    element += field.table_y;
  }
}

// Runs thread `thread` of slice `slice` (row × views + view): computes a strip
// of every field of the view.
template <int kChannels, bool kDali>
LEAT_PIXEL void FusedThread(const uint8_t* block, uint32_t thread,
                            uint32_t slice) {
  // These are copies: for all the compiler knows, the stores below could change
  // the block.
  const FusedHeader header = *InBlock<FusedHeader>(block, 0);
  const uint32_t row_index = slice / header.views;
  const FusedView view =
      InBlock<FusedView>(block, header.views_at)[slice % header.views];
  const uint32_t x = thread % view.width;
  const uint32_t y = thread / view.width * kStripRows;
  if (y >= view.height) return;
  const FusedRow row = InBlock<FusedRow>(block, header.rows_at)[slice];
  if (row.source == 0) return;
  const uint32_t left = view.height - y;
  const uint32_t count = left < kStripRows ? left : kStripRows;
  uint8_t strip[kStripRows][kChannels];
  if (row.sampling == FusedSampling::kCopy)
    CopyStrip<kChannels>(row, x, y, count, strip);
  else if (!kDali || row.sampling == FusedSampling::kTables)
    ResampleStrip<kChannels>(block, view, row, x, y, count, strip);
  else
    DaliStrip<kChannels>(block, row, x, y, count, strip);
  const uint64_t* const outputs =
      InBlock<uint64_t>(block, header.outputs_at) + row_index * header.fields;
  for (uint32_t f = view.first_field; f < view.end_field; ++f) {
    const FusedField field = InBlock<FusedField>(block, header.fields_at)[f];
    if (outputs[field.output] == 0) continue;
    uint8_t* const output = AtAddress(outputs[field.output]);
    if (field.kind != FusedKind::kHost) {
      StoreStrip<kChannels>(block, field, x, y, count, strip, output);
    } else if (thread == 0) {
      const uint8_t* value = block + header.host_values_at +
                             row_index * header.host_stride + field.at;
      for (uint32_t i = 0; i < field.element_bytes; ++i) output[i] = value[i];
    }
  }
}

}  // namespace leat::worker
