// SPDX-License-Identifier: Apache-2.0
//
// Loops over values: the inner loops of operators on values, for processors
// with and without AVX2, with the same bits.
//
// Operators work in blocks: a block of every operand is converted to one type,
// the operation is computed, and its results are converted to the result's
// type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/tensor.h"
#include "worker/image/formulas/color.h"

namespace leat::worker {

inline constexpr size_t kBlock = 1024;  // elements, at most

// Converts `count` elements of `from` at `in` to elements of `to` at `out`, as
// operator cast does. Neither side needs to be aligned.
void ConvertValues(const std::byte* in, DType from, size_t count, DType to,
                   std::byte* out);

struct ValueLoops {
  void (*bytes_to_floats)(const uint8_t* in, size_t count, float* out);
  void (*floats_to_bytes)(const float* in, size_t count, uint8_t* out);
  // Takes bytes; factors and matrices are finite.
  void (*linear_bytes)(const uint8_t* in, size_t count, float factor,
                       float constant, uint8_t* out);
  void (*linear_floats)(const float* in, size_t count, float factor,
                        float constant, float* out);
  // Maps pixels of 3 channels to pixels of 3.
  void (*matrix_bytes)(const ColorMatrix& matrix, const uint8_t* in,
                       size_t pixels, uint8_t* out);
  void (*matrix_floats)(const ColorMatrix& matrix, const float* in,
                        size_t pixels, float* out);
  // Maps pixels of 3 channels to bytes, by the first row of the matrix.
  void (*gray_bytes)(const ColorMatrix& matrix, const uint8_t* in,
                     size_t pixels, uint8_t* out);
  // out[i] = in[3 × i].
  void (*every_third)(const uint8_t* in, size_t count, uint8_t* out);
};

const ValueLoops& PlainValueLoops();
// Returns the fastest loops for this processor.
const ValueLoops& BestValueLoops();

}  // namespace leat::worker
