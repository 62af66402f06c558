// SPDX-License-Identifier: Apache-2.0
//
// FusedTail: the operators after the view, as one field of the fused kernel.
//
// cast computes an element from one byte, and normalize from a byte and its
// position along the last axis, which has at most four places. So all of them
// together are a table, which is made by running the CPU's operators on every
// byte.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor/image_size.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/image/program/program.h"

namespace leat::worker {

struct FusedTail {
  FusedField field;              // `at` is the table's offset, here still 0
  std::vector<std::byte> table;  // empty unless kTable
};

// `path`: normalize, cast and transpose steps, from the view on, in order.
FusedTail CompileTail(std::span<const Step* const> path, ImageSize size,
                      int channels);

// Returns the node whose value a normalize, cast or transpose step takes.
uint32_t InputOf(const Step& step);

}  // namespace leat::worker
