// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/value_types.h"

#include <algorithm>

namespace leat {

// The values of types that are computed with increase with the width: bool,
// uint8, int32, int64, float16, float32; every signed type is wider than every
// unsigned one.
DType PromotedType(DType a, DType b) { return std::max(a, b); }

double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 255;
    case DType::kInt32:
      return 0x1p31 - 1;
    case DType::kInt64:
      return 0x1p63;
    default:
      return 1;
  }
}

double MiddleOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 128;
    case DType::kInt32:
      return 0x1p30;
    case DType::kInt64:
      return 0x1p62;
    default:
      return 0.5;
  }
}

}  // namespace leat
