// SPDX-License-Identifier: Apache-2.0
#include "worker/image/loops/tensor.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/tensor/pointwise.h"
#include "worker/image/loops/values.h"

namespace leat::worker {

namespace {

size_t SaturatedProduct(size_t a, size_t b) {
  size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return std::numeric_limits<size_t>::max();
  return product;
}

}  // namespace

// An axis without elements counts even if the product of others saturates.
size_t Tensor::elements() const {
  size_t count = 1;
  for (int i = 0; i < rank; ++i)
    count = SaturatedProduct(count, static_cast<size_t>(dims[i]));
  return count;
}

size_t Tensor::bytes() const {
  return SaturatedProduct(elements(), SizeOf(dtype));
}

namespace {

// Exchanges and mirrors pixels of 3 bytes at both ends of [begin, end), five at
// a time, as long as 16 bytes at the ends do not overlap. Returns how many
// bytes are done at each end.
__attribute__((target("ssse3"))) size_t MirrorEnds(std::byte* begin,
                                                   std::byte* end) {
  // The 16th byte of each side belongs to another pixel, and stays.
  const __m128i to_left =
      _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, -1);
  const __m128i to_right =
      _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
  const __m128i last = _mm_setr_epi32(0, 0, 0, static_cast<int>(0xff000000));
  const __m128i first = _mm_setr_epi32(0xff, 0, 0, 0);
  std::byte *left = begin, *right = end;
  for (; right - left >= 32; left += 15, right -= 15) {
    auto* const low = reinterpret_cast<__m128i*>(left);
    auto* const high = reinterpret_cast<__m128i*>(right - 16);
    const __m128i a = _mm_loadu_si128(low), b = _mm_loadu_si128(high);
    _mm_storeu_si128(low, _mm_or_si128(_mm_shuffle_epi8(b, to_left),
                                       _mm_and_si128(a, last)));
    _mm_storeu_si128(high, _mm_or_si128(_mm_shuffle_epi8(a, to_right),
                                        _mm_and_si128(b, first)));
  }
  return static_cast<size_t>(left - begin);
}

}  // namespace

void MirrorRow(std::byte* row, size_t pixels, size_t pixel_bytes) {
  if (pixels == 0) return;
  std::byte* left = row;
  std::byte* right = row + (pixels - 1) * pixel_bytes;
  if (pixel_bytes == 3 && __builtin_cpu_supports("ssse3")) {
    const size_t done = MirrorEnds(row, row + pixels * pixel_bytes);
    left += done;
    right -= done;
  }
  for (; left < right; left += pixel_bytes, right -= pixel_bytes)
    std::swap_ranges(left, left + pixel_bytes, right);
}

void CopyWindow(const Tensor& image, const Rect& window, bool mirror_x,
                bool mirror_y, std::byte* out) {
  const size_t pixel = static_cast<size_t>(image.dims[2]) * SizeOf(image.dtype);
  const size_t in_row = static_cast<size_t>(image.dims[1]) * pixel;
  const size_t out_row = static_cast<size_t>(window.width) * pixel;
  for (int64_t y = 0; y < window.height; ++y) {
    const int64_t from = window.y + (mirror_y ? window.height - 1 - y : y);
    std::byte* to = out + y * out_row;
    memcpy(to, image.data + from * in_row + window.x * pixel, out_row);
    if (mirror_x) MirrorRow(to, static_cast<size_t>(window.width), pixel);
  }
}

void Cast(const Tensor& in, DType dtype, std::byte* out) {
  const size_t count = in.elements();
  if (in.dtype == dtype) {
    memcpy(out, in.data, count * SizeOf(dtype));
    return;
  }
  if (in.dtype == DType::kUint8 && dtype == DType::kFloat32 &&
      reinterpret_cast<uintptr_t>(out) % alignof(float) == 0)
    return BestValueLoops().bytes_to_floats(
        reinterpret_cast<const uint8_t*>(in.data), count,
        reinterpret_cast<float*>(out));
  if (in.dtype == DType::kFloat32 && dtype == DType::kUint8 &&
      reinterpret_cast<uintptr_t>(in.data) % alignof(float) == 0)
    return BestValueLoops().floats_to_bytes(
        reinterpret_cast<const float*>(in.data), count,
        reinterpret_cast<uint8_t*>(out));
  WithStorage(in.dtype, [&]<class In>(In) {
    WithStorage(dtype, [&]<class Out>(Out) {
      for (size_t i = 0; i < count; ++i) {
        In value;
        memcpy(&value, in.data + i * sizeof(In), sizeof value);
        const Out converted = Converted<Out>(value);
        memcpy(out + i * sizeof(Out), &converted, sizeof converted);
      }
    });
  });
}

Normalizer::Normalizer(std::span<const double> mean,
                       std::span<const double> std, double scale, double shift,
                       int channels, DType out)
    : channels_(channels), out_(out), shift_(static_cast<float>(shift)) {
  for (int c = 0; c < channels; ++c) {
    mean_.push_back(static_cast<float>(mean[mean.size() == 1 ? 0 : c]));
    factor_.push_back(static_cast<float>(scale / std[std.size() == 1 ? 0 : c]));
  }
  for (int x = 0; x < 256; ++x)
    for (int c = 0; c < channels; ++c) {
      floats_.push_back(At(static_cast<float>(x), c));
      halves_.push_back(HalfOf(floats_.back()));
    }
}

float Normalizer::At(float x, int channel) const {
  return Normalized(x, mean_[channel], factor_[channel], shift_);
}

void Normalizer::Run(const Tensor& in, std::byte* out) const {
  const size_t count = in.elements();
  const auto channels = static_cast<size_t>(channels_);
  const auto run = [&]<class Out>(const std::vector<Out>& of_byte) {
    if (in.dtype == DType::kUint8) {
      for (size_t i = 0; i < count; i += channels)
        for (size_t c = 0; c < channels; ++c) {
          const auto byte = static_cast<size_t>(in.data[i + c]);
          memcpy(out + (i + c) * sizeof(Out), &of_byte[byte * channels + c],
                 sizeof(Out));
        }
      return;
    }
    WithComputed(in.dtype, [&]<class In>(In) {
      for (size_t i = 0; i < count; ++i) {
        In value;
        memcpy(&value, in.data + i * sizeof(In), sizeof value);
        const float result = At(ToFloat(value), static_cast<int>(i % channels));
        Out stored;
        if constexpr (std::is_same_v<Out, float>)
          stored = result;
        else
          stored = HalfOf(result);
        memcpy(out + i * sizeof(Out), &stored, sizeof stored);
      }
    });
  };
  if (out_ == DType::kFloat16)
    run(halves_);
  else
    run(floats_);
}

namespace {

template <class T>
void TransposeAs(const Tensor& in, std::span<const int64_t> perm,
                 std::byte* out) {
  const ValueLoops& loops = BestValueLoops();
  std::array<int64_t, kMaxAxes> in_strides{}, strides{}, dims{}, index{};
  int64_t stride = 1;
  for (int i = in.rank - 1; i >= 0; --i) {
    in_strides[i] = stride;
    stride *= in.dims[i];
  }
  for (int i = 0; i < in.rank; ++i) {
    dims[i] = in.dims[perm[i]];
    strides[i] = in_strides[perm[i]];
  }
  const int last = in.rank - 1;
  std::byte* const end = out + in.bytes();
  int64_t offset = 0;
  while (out < end) {
    if (sizeof(T) == 1 && strides[last] == 3) {  // a plane of RGB
      loops.every_third(reinterpret_cast<const uint8_t*>(in.data) + offset,
                        static_cast<size_t>(dims[last]),
                        reinterpret_cast<uint8_t*>(out));
      out += dims[last];
    } else {
      for (int64_t i = 0; i < dims[last]; ++i, out += sizeof(T)) {
        T value;  // neither side needs to be aligned
        memcpy(&value, in.data + (offset + i * strides[last]) * sizeof(T),
               sizeof value);
        memcpy(out, &value, sizeof value);
      }
    }
    // Moves to the next run, like an odometer.
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) break;
      offset -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

void Transpose(const Tensor& in, std::span<const int64_t> perm,
               std::byte* out) {
  if (in.rank == 0) {
    memcpy(out, in.data, SizeOf(in.dtype));
    return;
  }
  switch (SizeOf(in.dtype)) {
    case 1:
      return TransposeAs<uint8_t>(in, perm, out);
    case 2:
      return TransposeAs<uint16_t>(in, perm, out);
    case 4:
      return TransposeAs<uint32_t>(in, perm, out);
    default:
      return TransposeAs<uint64_t>(in, perm, out);
  }
}

}  // namespace leat::worker
