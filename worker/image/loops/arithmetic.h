// SPDX-License-Identifier: Apache-2.0
//
// The loops of formulas/arithmetic.h, by operator and type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/tensor/tensor.h"

namespace leat::worker {

// out[i] = a[i] op b[i]; all are aligned. Comparisons give bytes of 0 or 1.
using BinaryLoop = void (*)(const void* a, const void* b, size_t count,
                            void* out);

struct BinaryLoops {
  BinaryLoop plain = nullptr;
  BinaryLoop best = nullptr;  // the fastest for this processor
};

// Returns the loops of the operators "add", "sub", "mul", "div", "floordiv",
// "min", "max", "lt", "le", "eq", "ne", "neg", "abs" (which take a alone),
// "bitwise_and", "bitwise_or" and "bitwise_xor" on uint8, int32, int64 and
// float32. Both are nullptr if there is none.
BinaryLoops FindBinaryLoops(std::string_view op, DType dtype);

// out[i] = which[i] ? a[i] : b[i], for elements of 1, 4 or 8 bytes.
using ChoiceLoop = void (*)(const uint8_t* which, const void* a, const void* b,
                            size_t count, void* out);
ChoiceLoop FindChoiceLoop(size_t element_bytes);

}  // namespace leat::worker
