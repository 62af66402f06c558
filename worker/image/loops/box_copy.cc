// SPDX-License-Identifier: Apache-2.0
//
// A box is a set of runs of consecutive elements: its innermost axes that are
// whole, and the axis outside them. The other axes are walked like an odometer.
#include "worker/image/loops/box_copy.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/pointwise.h"

namespace leat::worker {
namespace {

using Axes = std::array<int64_t, kMaxAxes>;

// Calls use(offset_a, offset_b, elements) for each run of two boxes that have
// the same extent and lie in tensors of the given dims. Offsets are in
// elements.
template <class Use>
void ForEachRun(int rank, const Axes& extent, const Axes& dims_a,
                const Axes& at_a, const Axes& dims_b, const Axes& at_b,
                Use use) {
  // Axes from `inner` on are one run.
  int inner = rank;
  int64_t run = 1;
  bool whole = true;
  while (inner > 0 && whole) {
    --inner;
    run *= extent[inner];
    whole = extent[inner] == dims_a[inner] && extent[inner] == dims_b[inner];
  }
  Axes stride_a{}, stride_b{}, index{};
  int64_t offset_a = 0, offset_b = 0, a = 1, b = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    stride_a[axis] = a;
    stride_b[axis] = b;
    offset_a += at_a[axis] * a;
    offset_b += at_b[axis] * b;
    a *= dims_a[axis];
    b *= dims_b[axis];
  }
  for (;;) {
    use(offset_a, offset_b, run);
    int axis = inner - 1;
    for (; axis >= 0; --axis) {
      offset_a += stride_a[axis];
      offset_b += stride_b[axis];
      if (++index[axis] < extent[axis]) break;
      offset_a -= stride_a[axis] * extent[axis];
      offset_b -= stride_b[axis] * extent[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace

bool Box::Covers(const Tensor& tensor) const {
  for (int i = 0; i < tensor.rank; ++i)
    if (at[i] != 0 || extent[i] != tensor.dims[i]) return false;
  return true;
}

bool Box::empty(int rank) const {
  return std::any_of(extent.begin(), extent.begin() + rank,
                     [](int64_t side) { return side <= 0; });
}

void CopyBox(const Tensor& in, const Box& from, const Tensor& out,
             const std::array<int64_t, kMaxAxes>& to) {
  if (from.empty(in.rank)) return;
  const size_t element = SizeOf(in.dtype);
  ForEachRun(in.rank, from.extent, in.dims, from.at, out.dims, to,
             [&](int64_t a, int64_t b, int64_t count) {
               memcpy(out.data + b * element, in.data + a * element,
                      count * element);
             });
}

FillPattern::FillPattern(std::span<const double> values, DType dtype)
    : count_(values.size()) {
  WithStorage(dtype, [&]<class T>(T) {
    for (const double value : values) {
      const T element = FromConstant<T>(value);
      const auto* bytes = reinterpret_cast<const std::byte*>(&element);
      elements_.insert(elements_.end(), bytes, bytes + sizeof element);
    }
  });
  is_one_byte_ = std::ranges::all_of(
      elements_, [&](std::byte each) { return each == elements_.front(); });
}

void FillPattern::FillAll(const Tensor& out) const {
  if (!is_one_byte_ || out.bytes() == 0) return Fill(out, Box::Whole(out));
  memset(out.data, std::to_integer<int>(elements_.front()), out.bytes());
}

void FillPattern::Fill(const Tensor& out, const Box& box) const {
  if (box.empty(out.rank)) return;
  const size_t element = SizeOf(out.dtype);
  // The pattern restarts with each last axis.
  const int64_t skipped = out.rank > 0 ? box.at[out.rank - 1] : 0;
  const int64_t last = out.rank > 0 ? box.extent[out.rank - 1] : 1;
  const std::byte* first = nullptr;
  const auto fill = [&](int64_t offset, int64_t, int64_t count) {
    std::byte* const to = out.data + offset * element;
    const size_t bytes = count * element;
    if (is_one_byte_) {
      memset(to, std::to_integer<int>(elements_.front()), bytes);
      return;
    }
    if (first != nullptr) {
      memcpy(to, first, bytes);
      return;
    }
    first = to;
    // Writes one last axis, or one element, and then doubles what is written.
    size_t done = element;
    if (count_ > 1) {
      done = last * element;
      memcpy(to, elements_.data() + skipped * element, done);
    } else {
      memcpy(to, elements_.data(), element);
    }
    for (; done < bytes; done *= 2)
      memcpy(to + done, to, std::min(done, bytes - done));
  };
  ForEachRun(out.rank, box.extent, out.dims, box.at, out.dims, box.at, fill);
}

}  // namespace leat::worker
