// SPDX-License-Identifier: Apache-2.0
//
// Which pipelines a GPU computes behind the decoder. Every operator has a form
// for a GPU's kernels, or is the host's, but for the gaps in a table
// (device_forms.cc). A pipeline with a node in a gap is computed on the cores,
// also of GPU workers, and cannot have decoder class nvjpeg. A second table has
// what keeps others from that class.
//
// The executor (worker/gpu) has bounds of its own beyond the table: of views,
// of tables, and of a slot's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/pipeline/operators.h"

namespace leat {

// The most bytes of a value that the host computes for a GPU's kernels.
inline constexpr size_t kMostHostValueBytes = size_t{16} << 10;
// The most bytes of a pattern that a GPU fills a box with.
inline constexpr size_t kMostPatternBytes = 4096;

// kUnimplemented: names a node that is in a gap, its operator, and why: "node 3
// (peek_shape) has no device form".
absl::Status CheckDeviceForms(const CheckedGraph& graph);

// Whether the pipeline can have decoder class nvjpeg, where the GPU's decoder
// makes pixels of its own: one image a row, and none that has to go to the
// host's decoder for what a worker's flags leave room for. kUnimplemented: why
// not: "no GPU can compute this pipeline: …", or what a node does.
absl::Status CheckDecoderForms(const CheckedGraph& graph);

}  // namespace leat
