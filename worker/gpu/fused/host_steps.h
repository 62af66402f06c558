// SPDX-License-Identifier: Apache-2.0
//
// A row's values that the host computes, which no pixel has a part in: by the
// CPU's operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/base/row_input.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Memory for a value, whose size is known; the sample's until its next one.
std::byte* PlaceHostValue(uint32_t value, FusedScratch::Sample* sample);

// Computes the step's value for one of the row's samples, in memory of its own.
// Errors: the operator's, of the sample or of its arguments.
absl::Status RunHostStep(const Step& step, uint64_t seed, Whose whose,
                         const RowInput& input, FusedScratch* scratch);

}  // namespace leat::worker
