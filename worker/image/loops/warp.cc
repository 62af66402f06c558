// SPDX-License-Identifier: Apache-2.0
//
// A row of a warped image has a middle part whose every tap lies inside the
// source; the loop over that part has no bounds tests.
#include "worker/image/loops/warp.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace leat::worker {
namespace {

template <class T>
struct Source {
  const T* pixels;
  int64_t height, width;
  int channels;
  bool clamped;
  T fill;

  T At(int64_t y, int64_t x, int channel) const {
    if (clamped) {
      x = std::clamp<int64_t>(x, 0, width - 1);
      y = std::clamp<int64_t>(y, 0, height - 1);
    } else if (x < 0 || x >= width || y < 0 || y >= height) {
      return fill;
    }
    return pixels[(y * width + x) * channels + channel];
  }
};

int32_t WeightOf(uint8_t, int64_t at) { return WarpWeight(at); }
float WeightOf(float, int64_t at) { return WarpFraction(at); }

template <class T>
void EdgePixel(const Source<T>& in, WarpFilter filter, int64_t sx, int64_t sy,
               T* out) {
  if (filter == WarpFilter::kNearest) {
    for (int c = 0; c < in.channels; ++c)
      out[c] = in.At(WarpFloor(sy), WarpFloor(sx), c);
    return;
  }
  sx -= kWarpHalf;
  sy -= kWarpHalf;
  const int64_t x = WarpFloor(sx), y = WarpFloor(sy);
  for (int c = 0; c < in.channels; ++c)
    out[c] =
        WarpBlend(in.At(y, x, c), in.At(y, x + 1, c), in.At(y + 1, x, c),
                  in.At(y + 1, x + 1, c), WeightOf(T{}, sx), WeightOf(T{}, sy));
}

// kChannels 0: the number is in.channels.
template <int kChannels, class T>
void InnerNearest(const Source<T>& in, int64_t sx, int64_t sy, int64_t dx,
                  int64_t dy, int64_t count, T* out) {
  const int channels = kChannels ? kChannels : in.channels;
  for (; count > 0; --count, sx += dx, sy += dy, out += channels) {
    const T* from =
        in.pixels + (WarpFloor(sy) * in.width + WarpFloor(sx)) * channels;
    for (int c = 0; c < channels; ++c) out[c] = from[c];
  }
}

template <int kChannels, class T>
void InnerLinear(const Source<T>& in, int64_t sx, int64_t sy, int64_t dx,
                 int64_t dy, int64_t count, T* out) {
  const int channels = kChannels ? kChannels : in.channels;
  const int64_t pitch = in.width * channels;
  sx -= kWarpHalf;
  sy -= kWarpHalf;
  for (; count > 0; --count, sx += dx, sy += dy, out += channels) {
    const T* a = in.pixels + WarpFloor(sy) * pitch + WarpFloor(sx) * channels;
    const auto fx = WeightOf(T{}, sx), fy = WeightOf(T{}, sy);
    for (int c = 0; c < channels; ++c)
      out[c] = WarpBlend(a[c], a[channels + c], a[pitch + c],
                         a[pitch + channels + c], fx, fy);
  }
}

struct Range {
  int64_t begin, end;
};

int64_t DividedUp(int64_t a, int64_t b) {  // b > 0
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// Returns the x of [0, count) for which least ≤ at + x × step < end.
Range Inside(int64_t at, int64_t step, int64_t least, int64_t end,
             int64_t count) {
  if (least >= end) return {0, 0};
  if (step == 0) return at >= least && at < end ? Range{0, count} : Range{0, 0};
  Range range;
  if (step > 0)
    range = {DividedUp(least - at, step), DividedUp(end - at, step)};
  else
    range = {DividedUp(at - end + 1, -step), DividedUp(at - least + 1, -step)};
  range.begin = std::clamp<int64_t>(range.begin, 0, count);
  range.end = std::clamp<int64_t>(range.end, range.begin, count);
  return range;
}

template <class T>
Source<T> SourceOf(const Tensor& in, std::optional<float> fill) {
  return {reinterpret_cast<const T*>(in.data),
          in.dims[0],
          in.dims[1],
          static_cast<int>(in.dims[2]),
          !fill.has_value(),
          Converted<T>(fill.value_or(0))};
}

template <class T>
void WarpAs(const Tensor& in, const WarpMap& map, WarpFilter filter,
            std::optional<float> fill, const Tensor& out) {
  const int channels = static_cast<int>(in.dims[2]);
  const Source<T> source = SourceOf<T>(in, fill);
  const bool linear = filter == WarpFilter::kLinear;
  const auto inner = linear          ? channels == 3   ? InnerLinear<3, T>
                                       : channels == 1 ? InnerLinear<1, T>
                                                       : InnerLinear<0, T>
                              : channels == 3 ? InnerNearest<3, T>
                     : channels == 1 ? InnerNearest<1, T>
                                     : InnerNearest<0, T>;
  // The part whose taps are all inside: [0, n) for nearest, half a pixel less
  // at both ends for linear.
  const int64_t margin = linear ? kWarpHalf : 0;
  const int64_t width = out.dims[1];
  T* row = reinterpret_cast<T*>(out.data);
  for (int64_t y = 0; y < out.dims[0]; ++y, row += width * channels) {
    const int64_t sx = map.SourceX(0, y), sy = map.SourceY(0, y);
    const Range across =
        Inside(sx, map.xx, margin, source.width * kWarpOne - margin, width);
    const Range along =
        Inside(sy, map.yx, margin, source.height * kWarpOne - margin, width);
    const int64_t begin = std::max(across.begin, along.begin);
    const int64_t end = std::max(begin, std::min(across.end, along.end));
    const auto edge = [&](int64_t first, int64_t last) {
      for (int64_t x = first; x < last; ++x)
        EdgePixel(source, filter, sx + x * map.xx, sy + x * map.yx,
                  row + x * channels);
    };
    edge(0, std::min(begin, width));
    if (begin < end)
      inner(source, sx + begin * map.xx, sy + begin * map.yx, map.xx, map.yx,
            end - begin, row + begin * channels);
    edge(std::min(end, width), width);
  }
}

// --- Rule "dali" ------------------------------------------------------------

uint8_t DaliFinished(uint8_t, float value) { return FinishDaliBlend(value); }
float DaliFinished(float, float value) {
  return value == value ? value : FloatOf(0x7fc00000u);
}

template <class T>
T DaliBlended(T a, T b, T c, T d, float fx, float fy) {
  return DaliFinished(
      T{}, DaliBlend(static_cast<float>(a), static_cast<float>(b),
                     static_cast<float>(c), static_cast<float>(d), fx, fy));
}

template <int kChannels, class T>
void DaliLinear(const Source<T>& in, float sx, float sy, T* out) {
  const int channels = kChannels ? kChannels : in.channels;
  sx -= 0.5f;
  sy -= 0.5f;
  const int32_t x = DaliFloor(sx), y = DaliFloor(sy);
  const float fx = sx - static_cast<float>(x), fy = sy - static_cast<float>(y);
  if (x >= 0 && y >= 0 && x + 1 < in.width && y + 1 < in.height) {
    const int64_t pitch = in.width * channels;
    const T* a = in.pixels + y * pitch + x * channels;
    for (int c = 0; c < channels; ++c)
      out[c] = DaliBlended(a[c], a[channels + c], a[pitch + c],
                           a[pitch + channels + c], fx, fy);
    return;
  }
  for (int c = 0; c < channels; ++c)
    out[c] = DaliBlended(in.At(y, x, c), in.At(y, x + 1, c), in.At(y + 1, x, c),
                         in.At(y + 1, x + 1, c), fx, fy);
}

template <int kChannels, class T>
void DaliNearestPixel(const Source<T>& in, float sx, float sy, T* out) {
  const int channels = kChannels ? kChannels : in.channels;
  const int32_t x = DaliFloor(sx), y = DaliFloor(sy);
  for (int c = 0; c < channels; ++c) out[c] = in.At(y, x, c);
}

template <int kChannels, class T>
void DaliRows(const Source<T>& in, const DaliMap& map, WarpFilter filter,
              const Tensor& out) {
  const int64_t channels = kChannels ? kChannels : in.channels;
  T* to = reinterpret_cast<T*>(out.data);
  const auto width = static_cast<int32_t>(out.dims[1]);
  for (int32_t y = 0; y < out.dims[0]; ++y) {
    float run_x = map.FirstX(y), run_y = map.FirstY(y);
    for (int32_t begin = 0; begin < width; begin += kDaliRun) {
      const int32_t end = std::min(width, begin + kDaliRun);
      float sx = run_x, sy = run_y;
      for (int32_t x = begin; x < end; ++x, to += channels) {
        if (filter == WarpFilter::kNearest)
          DaliNearestPixel<kChannels>(in, sx, sy, to);
        else
          DaliLinear<kChannels>(in, sx, sy, to);
        sx += map.xx;
        sy += map.yx;
      }
      run_x += map.RunX();
      run_y += map.RunY();
    }
  }
}

template <class T>
void WarpByDaliAs(const Tensor& in, const DaliMap& map, WarpFilter filter,
                  std::optional<float> fill, const Tensor& out) {
  const Source<T> source = SourceOf<T>(in, fill);
  if (source.channels == 3)
    DaliRows<3>(source, map, filter, out);
  else if (source.channels == 1)
    DaliRows<1>(source, map, filter, out);
  else
    DaliRows<0>(source, map, filter, out);
}

// --- Blur -------------------------------------------------------------------

int64_t Reflected(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}

float Sum(uint8_t a, uint8_t b) {
  return static_cast<float>(int32_t{a} + int32_t{b});
}
float Sum(float a, float b) { return a + b; }

uint8_t Finished(uint8_t, float value) { return Converted<uint8_t>(value); }
float Finished(float, float value) {
  return value == value ? value : FloatOf(0x7fc00000u);
}

// sums[i] (+)= weight × (a[i] + b[i]).
template <class T>
void AddRows(const T* __restrict a, const T* __restrict b, float weight,
             size_t count, float* __restrict sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += weight * Sum(a[i], b[i]);
}
template <class T>
void StartRow(const T* __restrict a, float weight, size_t count,
              float* __restrict sums) {
  for (size_t i = 0; i < count; ++i)
    sums[i] = weight * static_cast<float>(a[i]);
}

template <class T>
void BlurAs(const Tensor& in, std::span<const float> weights,
            const Tensor& out) {
  const int64_t height = in.dims[0], width = in.dims[1];
  const auto channels = static_cast<size_t>(in.dims[2]);
  const size_t count = static_cast<size_t>(width) * channels;
  const auto radius = static_cast<int64_t>(weights.size()) - 1;
  const T* const pixels = reinterpret_cast<const T*>(in.data);
  T* to = reinterpret_cast<T*>(out.data);
  // A row after the vertical pass, with its reflections at both ends; and the
  // row after the horizontal pass.
  const size_t margin = static_cast<size_t>(radius) * channels;
  std::vector<float> padded(count + 2 * margin), sums(count);
  float* const middle = padded.data() + margin;
  for (int64_t y = 0; y < height; ++y, to += count) {
    const auto row = [&](int64_t at) {
      return pixels + Reflected(at, height) * static_cast<int64_t>(count);
    };
    StartRow(row(y), weights[0], count, middle);
    for (int64_t k = 1; k <= radius; ++k)
      AddRows(row(y - k), row(y + k), weights[k], count, middle);
    const auto reflect = [&](int64_t x) {
      memcpy(middle + x * static_cast<int64_t>(channels),
             middle + Reflected(x, width) * static_cast<int64_t>(channels),
             channels * sizeof(float));
    };
    for (int64_t k = 1; k <= radius; ++k) {
      reflect(-k);
      reflect(width - 1 + k);
    }
    StartRow(middle, weights[0], count, sums.data());
    for (int64_t k = 1; k <= radius; ++k)
      AddRows(middle - k * static_cast<int64_t>(channels),
              middle + k * static_cast<int64_t>(channels), weights[k], count,
              sums.data());
    for (size_t i = 0; i < count; ++i) to[i] = Finished(T{}, sums[i]);
  }
}

}  // namespace

void Warp(const Tensor& in, const WarpMap& map, WarpFilter filter,
          std::optional<float> fill, const Tensor& out) {
  if (in.dtype == DType::kUint8)
    WarpAs<uint8_t>(in, map, filter, fill, out);
  else
    WarpAs<float>(in, map, filter, fill, out);
}

void WarpByDali(const Tensor& in, const DaliMap& map, WarpFilter filter,
                std::optional<float> fill, const Tensor& out) {
  if (in.dtype == DType::kUint8)
    WarpByDaliAs<uint8_t>(in, map, filter, fill, out);
  else
    WarpByDaliAs<float>(in, map, filter, fill, out);
}

void Blur(const Tensor& in, std::span<const float> weights, const Tensor& out) {
  if (in.dtype == DType::kUint8)
    BlurAs<uint8_t>(in, weights, out);
  else
    BlurAs<float>(in, weights, out);
}

}  // namespace leat::worker
