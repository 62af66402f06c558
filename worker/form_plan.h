// SPDX-License-Identifier: Apache-2.0
//
// FormPlan: of how many records of each dataset a cache keeps which form of
// their JPEG beside them.
//
// The nanoseconds that a form saves in a second, for each byte of it, decide:
// what is worth most comes first, while there is room. A record has one form,
// so that coefficients beside a seek index are worth, and cost, the difference.
// Where they are worth more for each byte than the seek index itself, nothing
// is gained by keeping that first.
#pragma once

#include <span>
#include <vector>

#include "worker/image/jpeg_forms/form_kinds.h"

namespace leat::worker {

// A dataset of JPEG files.
struct FormDemand {
  double records = 0;  // that are kept, or will be
  double decodes = 0;  // of them in a second
  // The size of a record's form.
  double seek_bytes = 0, coefficient_bytes = 0;
  // The time of one decode.
  double plain_ns = 0, seek_ns = 0, coefficient_ns = 0;
};

// Forms go to the records of the lowest ranks: what share of them has
// coefficients, and what share has those or a seek index.
struct FormShare {
  double coefficients = 0;
  double any = 0;
};

// By demand. `kinds`: what may be kept.
std::vector<FormShare> PlanForms(std::span<const FormDemand> demands,
                                 FormKinds kinds, double room_bytes);

}  // namespace leat::worker
