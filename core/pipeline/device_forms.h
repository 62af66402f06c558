// SPDX-License-Identifier: Apache-2.0
//
// Decides which pipelines a GPU computes after the decoder. Every operator has
// a GPU implementation or runs on the host, except for the gaps in a table
// (device_forms.cc). A pipeline with a node in a gap is computed on CPU cores,
// also on GPU workers, and cannot have decoder class nvjpeg. A second table
// lists what excludes other pipelines from that class.
//
// The executor (worker/gpu) has bounds beyond the table: on views, on tables,
// and on a slot's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/pipeline/operators.h"

namespace leat {

// Maximum size of a value that the host computes for a GPU's kernels.
inline constexpr size_t kMostHostValueBytes = size_t{16} << 10;
// Maximum size of a pattern with which a GPU fills a box.
inline constexpr size_t kMostPatternBytes = 4096;

// kUnimplemented: names a node that is in a gap, its operator, and the reason:
// "node 3 (peek_shape) has no device form".
absl::Status CheckDeviceForms(const CheckedGraph& graph);

// Checks that the pipeline can have decoder class nvjpeg, where the GPU's
// decoder makes its own pixels: there is one image per row, and no image needs
// the host's decoder because of the room that a worker's flags leave.
// kUnimplemented: the reason: "no GPU can compute this pipeline: …", or what a
// node does.
absl::Status CheckDecoderForms(const CheckedGraph& graph);

}  // namespace leat
