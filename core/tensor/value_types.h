// SPDX-License-Identifier: Apache-2.0
//
// Types of computed values: promotion, and the range used for colours.
#pragma once

#include "core/tensor/tensor.h"

namespace leat {

// Returns the type of an operation on two values, as DALI's operators define
// it: floats take precedence over integers, and the wider type over the
// narrower; bool is the narrowest unsigned integer. REQUIRES: neither is only
// carried.
DType PromotedType(DType a, DType b);

inline bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kBfloat16;
}

// Return the largest value of a type, and half its positive range; 1 and 0.5
// for floats. REQUIRES: !IsCarried(dtype).
double LargestOf(DType dtype);
double MiddleOf(DType dtype);

}  // namespace leat
