// SPDX-License-Identifier: Apache-2.0
//
// Types of computed values: promotion, and the range that colours use.
#pragma once

#include "core/tensor/tensor.h"

namespace leat {

// The type in which two values meet, as DALI's operators have it: floats win
// over integers and the wider one wins; bool is the narrowest unsigned integer.
DType PromotedType(DType a, DType b);

inline bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32;
}

// The largest value of a type, and half the range of its positive ones; 1 and
// 0.5 for floats.
double LargestOf(DType dtype);
double MiddleOf(DType dtype);

}  // namespace leat
