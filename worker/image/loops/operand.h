// SPDX-License-Identifier: Apache-2.0
//
// Operand: an input of an operator that works value by value, as a stream of
// blocks of one type, repeated as broadcasting requires.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/loops/values.h"

namespace leat::worker {

// Writes the shape that the inputs broadcast to into `result`.
// kInvalidArgument: their shapes do not fit.
absl::Status BroadcastShape(std::span<const Tensor* const> inputs,
                            Tensor* result);

// Yields blocks of at most kBlock elements, in order.
class Operand {
 public:
  // REQUIRES: `in` broadcasts to the shape of `result`, and outlives this.
  Operand(const Tensor& in, const Tensor& result, DType dtype);

  // Returns the number of elements that repeat, if they are the result's last
  // axes and few; else 1.
  size_t period() const { return kind_ == Kind::kPeriodic ? count_ : 1; }

  // Returns elements [at, at + count) of the result, in `dtype`, aligned; valid
  // until the next call. REQUIRES: count ≤ kBlock.
  const void* Next(size_t at, size_t count);

 private:
  enum class Kind : uint8_t { kWhole, kPeriodic, kScattered };

  void Gather(size_t at, size_t count);
  size_t OffsetOf(size_t at) const;

  const Tensor& in_;
  const Tensor& result_;
  const DType dtype_;
  Kind kind_;
  size_t count_;                            // elements in the input
  std::array<size_t, kMaxAxes> strides_{};  // per axis of the result
  bool filled_ = false;                     // true if a periodic block is ready
  alignas(32) std::byte block_[kBlock * 8];     // in dtype_
  alignas(32) std::byte gathered_[kBlock * 8];  // in the type of in_
};

// Returns the type in which values of `dtype` are computed: bools as bytes,
// float16 as float32.
DType ComputedAs(DType dtype);

}  // namespace leat::worker
