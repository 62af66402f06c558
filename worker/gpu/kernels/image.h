// SPDX-License-Identifier: Apache-2.0
//
// The bodies of the GPU kernels for stages on images: colours, views, warps and
// blur. C++ compiles them too, so that tests and the fake driver run the same
// code on a host. The arithmetic is that of worker/image.
//
// Each function ending in Thread is one thread of a launch: thread `thread` of
// row `index` of the table at `rows`. It reads and writes only its own pixels or
// elements, so threads need no order. It does nothing where the row has no
// output or fewer threads, and cannot fail.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/map.h"
#include "worker/gpu/kernels/strips.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/formulas/warp.h"

namespace leat::worker {

// Computes one pixel.
LEAT_PIXEL void PixelsThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const PixelsRow& row =
      reinterpret_cast<const PixelsRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  if (row.ycbcr)
    return RgbToYcbcr(AtAddress(row.in + uint64_t{thread} * 3),
                      AtAddress(row.head.out + uint64_t{thread} * 3));
  const uint32_t in_bytes = StageSizeOf(row.in_dtype);
  const uint32_t bytes = StageSizeOf(row.head.dtype);
  float x[3] = {0, 0, 0};
  for (uint32_t c = 0; c < row.in_channels; ++c)
    x[c] = ValueAs<float>(
        LoadValue(row.in + (uint64_t{thread} * row.in_channels + c) * in_bytes,
                  row.in_dtype));
  for (uint32_t c = 0; c < row.channels; ++c)
    StoreValue(ValueOf(OneNan(MatrixRow(row.matrix, static_cast<int>(c), x[0],
                                        x[1], x[2]))),
               row.head.dtype,
               row.head.out + (uint64_t{thread} * row.channels + c) * bytes);
}

// Computes a strip of kStripRows pixels, as the fused kernel does.
template <int kChannels>
LEAT_PIXEL void ResampleChannels(const ResampleRow& row, uint32_t x, uint32_t y,
                                 uint32_t channel) {
  const uint32_t left = row.view.height - y;
  const uint32_t count = left < kStripRows ? left : kStripRows;
  FusedRow from = row.from;
  from.source += static_cast<uint64_t>(int64_t{channel} * from.step_c);
  uint8_t strip[kStripRows][kChannels];
  const uint8_t* const tables = AtAddress(row.tables);
  if (from.sampling == FusedSampling::kCopy)
    CopyStrip<kChannels>(from, x, y, count, strip);
  else if (from.sampling == FusedSampling::kTables)
    ResampleStrip<kChannels>(tables, row.view, from, x, y, count, strip);
  else
    DaliStrip<kChannels>(tables, from, x, y, count, strip);
  uint8_t* to = AtAddress(row.head.out) +
                (uint64_t{y} * row.view.width + x) * row.channels + channel;
  for (uint32_t k = 0; k < kStripRows; ++k) {
    if (k >= count) break;
    for (int c = 0; c < kChannels; ++c) to[c] = strip[k][c];
    to += uint64_t{row.view.width} * row.channels;
  }
}
LEAT_PIXEL void ResampleThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const ResampleRow& row =
      reinterpret_cast<const ResampleRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const uint32_t x = thread % row.view.width;
  const uint32_t y = thread / row.view.width * kStripRows;
  if (row.channels == 3) return ResampleChannels<3>(row, x, y, 0);
  for (uint32_t c = 0; c < row.channels; ++c) ResampleChannels<1>(row, x, y, c);
}

// --- Warps ------------------------------------------------------------------

LEAT_PIXEL uint8_t DaliWarped(uint8_t, float value) {
  return FinishDaliBlend(value);
}
LEAT_PIXEL float DaliWarped(float, float value) {
  return value == value ? value : FloatOf(0x7fc00000u);
}
LEAT_PIXEL int32_t WarpWeightOf(uint8_t, int64_t at) { return WarpWeight(at); }
LEAT_PIXEL float WarpWeightOf(float, int64_t at) { return WarpFraction(at); }

template <class T>
struct WarpSource {
  const T* pixels;
  T fill;

  LEAT_PIXEL T At(const WarpRow& row, int64_t y, int64_t x,
                  uint32_t channel) const {
    if (row.clamped) {
      x = x < 0 ? 0 : x >= row.in_width ? row.in_width - 1 : x;
      y = y < 0 ? 0 : y >= row.in_height ? row.in_height - 1 : y;
    } else if (x < 0 || x >= row.in_width || y < 0 || y >= row.in_height) {
      return fill;
    }
    return pixels[(y * row.in_width + x) * row.channels + channel];
  }
};

// Computes the position of pixel (x, y) by rule "dali", adding step by step.
LEAT_PIXEL void DaliPlace(const DaliMap& map, int32_t x, int32_t y, float* sx,
                          float* sy) {
  *sx = map.FirstX(y);
  *sy = map.FirstY(y);
  for (int32_t run = kDaliRun; run <= x; run += kDaliRun) {
    *sx += map.RunX();
    *sy += map.RunY();
  }
  for (int32_t i = x / kDaliRun * kDaliRun; i < x; ++i) {
    *sx += map.xx;
    *sy += map.yx;
  }
}

template <class T>
LEAT_PIXEL void WarpFixed(const WarpRow& row, const WarpSource<T>& in,
                          int64_t x, int64_t y, T* to) {
  int64_t sx = row.map.SourceX(x, y), sy = row.map.SourceY(x, y);
  if (row.nearest) {
    for (uint32_t c = 0; c < row.channels; ++c)
      to[c] = in.At(row, WarpFloor(sy), WarpFloor(sx), c);
    return;
  }
  sx -= kWarpHalf;
  sy -= kWarpHalf;
  const int64_t ix = WarpFloor(sx), iy = WarpFloor(sy);
  for (uint32_t c = 0; c < row.channels; ++c)
    to[c] = WarpBlend(in.At(row, iy, ix, c), in.At(row, iy, ix + 1, c),
                      in.At(row, iy + 1, ix, c), in.At(row, iy + 1, ix + 1, c),
                      WarpWeightOf(T{}, sx), WarpWeightOf(T{}, sy));
}

template <class T>
LEAT_PIXEL void WarpDali(const WarpRow& row, const WarpSource<T>& in, int32_t x,
                         int32_t y, T* to) {
  float sx, sy;
  DaliPlace(row.dali_map, x, y, &sx, &sy);
  if (row.nearest) {
    const int32_t ix = DaliFloor(sx), iy = DaliFloor(sy);
    for (uint32_t c = 0; c < row.channels; ++c) to[c] = in.At(row, iy, ix, c);
    return;
  }
  sx -= 0.5f;
  sy -= 0.5f;
  const int32_t ix = DaliFloor(sx), iy = DaliFloor(sy);
  const float fx = sx - static_cast<float>(ix);
  const float fy = sy - static_cast<float>(iy);
  const int64_t x0 = ix, y0 = iy;
  for (uint32_t c = 0; c < row.channels; ++c)
    to[c] = DaliWarped(
        T{},
        DaliBlend(static_cast<float>(in.At(row, y0, x0, c)),
                  static_cast<float>(in.At(row, y0, x0 + 1, c)),
                  static_cast<float>(in.At(row, y0 + 1, x0, c)),
                  static_cast<float>(in.At(row, y0 + 1, x0 + 1, c)), fx, fy));
}

template <class T>
LEAT_PIXEL void WarpAs(const WarpRow& row, uint32_t thread) {
  constexpr uint32_t kMostChannels = 4;  // at once
  const WarpSource<T> in{reinterpret_cast<const T*>(AtAddress(row.in)),
                         Converted<T>(row.fill)};
  const uint32_t x = thread % row.width, y = thread / row.width;
  T pixel[kMostChannels];
  if (row.dali)
    WarpDali(row, in, static_cast<int32_t>(x), static_cast<int32_t>(y), pixel);
  else
    WarpFixed(row, in, int64_t{x}, int64_t{y}, pixel);
  const uint64_t to =
      row.head.out + uint64_t{thread} * row.channels * sizeof(T);
  for (uint32_t c = 0; c < row.channels; ++c)
    StoreStored(pixel[c], to + c * sizeof(T));
}

// Computes one pixel of at most four channels.
LEAT_PIXEL void WarpThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const WarpRow& row = reinterpret_cast<const WarpRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  if (row.in_dtype == DType::kUint8)
    WarpAs<uint8_t>(row, thread);
  else
    WarpAs<float>(row, thread);
}

// --- Blur -------------------------------------------------------------------

// Returns the index at `distance` from the first element, to either side of it,
// in a line of `n` that is reflected without repeating its ends.
LEAT_PIXEL uint32_t BlurReflected(uint32_t distance, uint32_t n) {
  if (distance < n) return distance;
  if (n == 1) return 0;
  const uint32_t period = 2 * (n - 1);
  // The radius may exceed the line.
  if (distance > period) distance %= period;
  return distance < n ? distance : period - distance;
}
LEAT_PIXEL float BlurSum(uint8_t a, uint8_t b) {
  return static_cast<float>(int32_t{a} + int32_t{b});
}
LEAT_PIXEL float BlurSum(float a, float b) { return a + b; }

// Returns the weighted sum along one axis, around position `at` of `size`;
// elements are `step` apart.
template <class T>
LEAT_PIXEL float BlurTaps(const T* line, uint32_t at, uint32_t size,
                          int64_t step, const float* weights, uint32_t radius) {
  const T* const here = line + at * step;
  float sum = weights[0] * static_cast<float>(*here);
  if (at >= radius && size - at > radius) {
    int64_t far = 0;
    for (uint32_t k = 1; k <= radius; ++k) {
      far += step;
      sum += weights[k] * BlurSum(here[-far], here[far]);
    }
    return sum;
  }
  for (uint32_t k = 1; k <= radius; ++k) {
    const uint32_t before = BlurReflected(k > at ? k - at : at - k, size);
    const uint32_t behind = BlurReflected(at + k, size);
    sum += weights[k] * BlurSum(line[before * step], line[behind * step]);
  }
  return sum;
}

// Computes one element.
LEAT_PIXEL void BlurThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const BlurRow& row = reinterpret_cast<const BlurRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const auto* weights = reinterpret_cast<const float*>(AtAddress(row.weights));
  const auto channels = static_cast<uint32_t>(row.channels);
  const auto width = static_cast<uint32_t>(row.width);
  const auto height = static_cast<uint32_t>(row.height);
  const auto radius = static_cast<uint32_t>(row.radius);
  const uint32_t pitch = width * channels;  // a row has at most 2^32 threads
  const uint32_t y = thread / pitch, column = thread % pitch;
  const uint8_t* const in = AtAddress(row.in);
  float sum;
  if (row.across)
    sum = BlurTaps(reinterpret_cast<const float*>(in) + uint64_t{y} * pitch +
                       column % channels,
                   column / channels, width, channels, weights, radius);
  else if (row.in_dtype == DType::kUint8)
    sum = BlurTaps(in + column, y, height, pitch, weights, radius);
  else
    sum = BlurTaps(reinterpret_cast<const float*>(in) + column, y, height,
                   pitch, weights, radius);
  // Between the passes a NaN may have any bits.
  if (row.across && !(sum == sum)) sum = FloatOf(0x7fc00000u);
  StoreValue(ValueOf(sum), row.head.dtype,
             row.head.out + uint64_t{thread} * StageSizeOf(row.head.dtype));
}

}  // namespace leat::worker
