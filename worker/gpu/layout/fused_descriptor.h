// SPDX-License-Identifier: Apache-2.0
//
// FusedHeader and its parts: the input of the fused kernel. It is one block of
// memory, written on the host (by FusedGroup), copied to the device at once,
// and full of offsets from its own begin, so that it may lie at any address
// that is aligned to kFusedAlignment.
//
//   FusedHeader | FusedView[views] | FusedField[fields] | pixel tables |
//   FusedRow[rows][views] | outputs[rows][fields] | host values[rows] |
//   resampling tables of rows
//
// Every operator's effect on a row is a number here: orientation, mirrors and
// the pixels' layout are the source's steps; resampling is two tables; later
// operators (normalize, cast) depend only on the byte and at most its channel,
// so they are a table as well, made by the CPU's operators; transpose is the
// output's steps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::worker {

// The number of pixels, one above the other, that a thread of the fused kernel
// computes; FusedStrips is the number of threads per image.
inline constexpr uint32_t kStripRows = 4;
inline uint32_t FusedStrips(uint32_t width, uint32_t height) {
  return width * ((height + kStripRows - 1) / kStripRows);
}

inline constexpr size_t kFusedAlignment = 64;

struct FusedHeader {
  uint32_t rows = 0;
  uint32_t views = 0;
  uint32_t fields = 0;
  uint32_t views_at = 0;        // FusedView[views]
  uint32_t fields_at = 0;       // FusedField[fields], view after view
  uint32_t rows_at = 0;         // FusedRow[rows][views]
  uint32_t outputs_at = 0;      // uint64_t[rows][fields]: addresses; 0: none
  uint32_t host_values_at = 0;  // [rows][host_stride]
  uint32_t host_stride = 0;
};

// A view of the decoded image, and the fields made from it. Values of the host
// are fields of the first view.
struct FusedView {
  uint32_t width = 0, height = 0;
  uint32_t first_field = 0, end_field = 0;
};

enum class FusedKind : uint32_t {
  kBytes,  // the view's bytes
  kTable,  // table[channel and place][byte]
  kHost,   // a value that the host computed
  kStage,  // a later stage writes it: nothing here
};

// One field of all rows.
struct FusedField {
  FusedKind kind = FusedKind::kBytes;
  uint32_t output = 0;         // its index in the schema and in the outputs
  uint32_t element_bytes = 1;  // 1, 2, 4, 8; for kHost: of the value
  // kTable: element table_y × y + table_x × x + table_c × channel + byte.
  // kHost: the offset of the value in a row's host values.
  uint32_t at = 0;
  uint32_t table_y = 0, table_x = 0, table_c = 0;
  uint32_t out_y = 0, out_x = 0, out_c = 0;  // steps in the output, in bytes
};

// A position along one axis: `taps` inputs from `start` on.
struct FusedEntry {
  int32_t start = 0;
  int32_t taps = 0;  // > 0
};

// How a view's pixels are computed from the image's.
enum class FusedSampling : int32_t {
  kCopy,    // unchanged
  kTables,  // integer weights, across first
  // Rule "dali": worker/image/formulas/dali_pixel.h.
  kDaliAcrossFirst,
  kDaliDownFirst,
};

// Resampling along one axis.
//
// For rule "dali", `entries_at` is int32_t[positions], the first tap of each.
// It may lie outside [0, inputs): pixels at the edge are then repeated.
// `weights_at` is float[position][tap], and `stride` the number of taps per
// position.
struct FusedAxis {
  uint32_t entries_at = 0;  // FusedEntry[positions]
  // int16_t. Horizontal: [tap][position], so that neighbouring threads read
  // neighbouring weights; vertical: [position][tap].
  uint32_t weights_at = 0;
  int32_t stride = 0;  // of the vertical weights
  int32_t bits = 0;
  int32_t inputs = 0;  // for rule "dali"
};

// A view of a row.
struct FusedRow {
  // Address of the pixel that both tables count from, or of the view's first
  // pixel; 0: the row is computed elsewhere, and nothing is written.
  uint64_t source = 0;
  // Steps to the next pixel, row and channel, in bytes. Every address that is
  // read lies within 2^31 of `source`.
  int32_t step_x = 0, step_y = 0, step_c = 0;
  FusedSampling sampling = FusedSampling::kCopy;
  FusedAxis horizontal, vertical;  // if it resamples
};

}  // namespace leat::worker
