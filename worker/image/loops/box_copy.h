// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills of boxes: parts of dense tensors with sides along the axes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/image/loops/tensor.h"

namespace leat::worker {

// A box inside a tensor of as many axes.
struct Box {
  std::array<int64_t, kMaxAxes> at{};
  std::array<int64_t, kMaxAxes> extent{};

  static Box Whole(const Tensor& tensor) { return {{}, tensor.dims}; }
  bool Covers(const Tensor& tensor) const;
  bool empty(int rank) const;
};

// Copies the box `from` of `in` to the place `to` of `out`, which has the same
// dtype.
// REQUIRES: both boxes lie inside their tensors.
void CopyBox(const Tensor& in, const Box& from, const Tensor& out,
             const std::array<int64_t, kMaxAxes>& to);

// The values that fill a box: numbers as elements of a dtype.
class FillPattern {
 public:
  // `values`: one, or as many as the last axis of the filled tensors has
  // elements. They are stored by FromConstant.
  FillPattern(std::span<const double> values, DType dtype);
  void Fill(const Tensor& out, const Box& box) const;
  void FillAll(const Tensor& out) const;
  // Returns the pattern as elements of the dtype: one, or a last axis of them.
  std::span<const std::byte> elements() const { return elements_; }

 private:
  size_t count_;
  std::vector<std::byte> elements_;
  bool is_one_byte_ = false;  // repeated, as in zeros of any dtype
};

}  // namespace leat::worker
