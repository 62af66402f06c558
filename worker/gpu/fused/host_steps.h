// SPDX-License-Identifier: Apache-2.0
//
// Computes, on the host and by the CPU's operators, those values of a row that
// do not depend on pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/base/row_input.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Returns memory for a value of known size; valid until the sample's next one.
std::byte* PlaceHostValue(uint32_t value, FusedScratch::Sample* sample);

// Computes the step's value for one of the row's samples, in its own memory.
// Errors: the operator's, for the sample or for its arguments.
absl::Status RunHostStep(const Step& step, Whose whose, const RowInput& input,
                         FusedScratch* scratch);

}  // namespace leat::worker
