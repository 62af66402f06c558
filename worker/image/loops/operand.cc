// SPDX-License-Identifier: Apache-2.0
#include "worker/image/loops/operand.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "core/tensor/broadcast.h"
#include "fmt/ranges.h"

namespace leat::worker {
namespace {

std::span<const int64_t> Dims(const Tensor& tensor) {
  return {tensor.dims.data(), static_cast<size_t>(tensor.rank)};
}

}  // namespace

DType ComputedAs(DType dtype) {
  if (dtype == DType::kBool) return DType::kUint8;
  if (dtype == DType::kFloat16) return DType::kFloat32;
  return dtype;
}

absl::Status BroadcastShape(std::span<const Tensor* const> inputs,
                            Tensor* result) {
  bool same = true;
  for (const Tensor* input : inputs)
    same = same && input->rank == inputs[0]->rank &&
           input->dims == inputs[0]->dims;
  result->rank = inputs[0]->rank;
  result->dims = inputs[0]->dims;
  if (same) return absl::OkStatus();
  // In place, since computing a row allocates nothing.
  for (const Tensor* input : inputs.subspan(1)) {
    const int more = input->rank - result->rank;
    if (more > 0) {
      std::copy_backward(result->dims.begin(),
                         result->dims.begin() + result->rank,
                         result->dims.begin() + input->rank);
      std::fill_n(result->dims.begin(), more, 1);
      result->rank = input->rank;
    }
    for (int i = 0; i < input->rank; ++i) {
      const int64_t size = input->dims[i];
      int64_t& joined = result->dims[result->rank - input->rank + i];
      if (size == joined || size == 1) continue;
      if (joined != 1)
        return InvalidArgument(
            "inputs are ({}) and ({}), want the same shape or sizes of 1",
            fmt::join(Dims(*inputs[0]), ", "), fmt::join(Dims(*input), ", "));
      joined = size;
    }
  }
  return absl::OkStatus();
}

Operand::Operand(const Tensor& in, const Tensor& result, DType dtype)
    : in_(in), result_(result), dtype_(dtype), count_(in.elements()) {
  const int missing = result.rank - in.rank;
  size_t stride = 1, tail = 1;
  bool at_tail = true;  // true while the axes so far are the result's
  for (int i = result.rank - 1; i >= 0; --i) {
    const int64_t size = i < missing ? 1 : in.dims[i - missing];
    strides_[i] = size == 1 ? 0 : stride;
    stride *= static_cast<size_t>(size);
    at_tail = at_tail && size == result.dims[i];
    if (at_tail) tail = stride;
  }
  if (count_ == result.elements())
    kind_ = Kind::kWhole;
  else if (tail == count_ && count_ <= kBlock)
    kind_ = Kind::kPeriodic;
  else
    kind_ = Kind::kScattered;
}

size_t Operand::OffsetOf(size_t at) const {
  size_t offset = 0;
  for (int i = result_.rank - 1; i >= 0; --i) {
    const auto size = static_cast<size_t>(result_.dims[i]);
    offset += at % size * strides_[i];
    at /= size;
  }
  return offset;
}

// Gathers along the last axis, where the step is constant.
void Operand::Gather(size_t at, size_t count) {
  const size_t bytes = SizeOf(in_.dtype);
  const auto width = static_cast<size_t>(result_.dims[result_.rank - 1]);
  const size_t step = strides_[result_.rank - 1];
  for (size_t done = 0; done < count;) {
    const size_t run = std::min(count - done, width - (at + done) % width);
    size_t from = OffsetOf(at + done);
    for (size_t i = 0; i < run; ++i, from += step)
      memcpy(gathered_ + (done + i) * bytes, in_.data + from * bytes, bytes);
    done += run;
  }
}

const void* Operand::Next(size_t at, size_t count) {
  if (kind_ == Kind::kPeriodic) {
    if (filled_) return block_;
    filled_ = true;
    const size_t bytes = SizeOf(dtype_);
    ConvertValues(in_.data, in_.dtype, count_, dtype_, block_);
    // Doubles the elements already written.
    for (size_t have = count_; have < count;) {
      const size_t more = std::min(have, count - have);
      memcpy(block_ + have * bytes, block_, more * bytes);
      have += more;
    }
    return block_;
  }
  const std::byte* from = in_.data + at * SizeOf(in_.dtype);
  if (kind_ == Kind::kScattered) {
    Gather(at, count);
    from = gathered_;
  }
  const bool as_it_is = ComputedAs(in_.dtype) == dtype_ &&
                        SizeOf(in_.dtype) == SizeOf(dtype_) &&
                        reinterpret_cast<uintptr_t>(from) % SizeOf(dtype_) == 0;
  if (as_it_is) return from;
  ConvertValues(from, in_.dtype, count, dtype_, block_);
  return block_;
}

}  // namespace leat::worker
