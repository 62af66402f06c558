// SPDX-License-Identifier: Apache-2.0
//
// Stages on images of bytes: counting each byte, mapping each byte, and
// sharpening. A table is made from the counts, and a later launch looks it up.
// C++ and CUDA compile this file.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/map.h"
#include "worker/image/formulas/augment.h"

namespace leat::worker {

// Threads of one launch may count the same byte.
LEAT_PIXEL void CountOne(uint32_t* count) {
#ifdef __CUDA_ARCH__
  atomicAdd(count, 1u);
#else
  ++*count;  // the host runs one thread after the other
#endif
}

// Counts one element. There are 256 counts per channel, initially 0.
LEAT_PIXEL void CountThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const CountRow& row =
      reinterpret_cast<const CountRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  auto* const counts = reinterpret_cast<uint32_t*>(AtAddress(row.head.out));
  const uint32_t channel = thread % row.channels;
  CountOne(counts + 256 * channel + *AtAddress(row.in + thread));
}

struct ByteRange {
  int32_t least, greatest;
};
LEAT_PIXEL ByteRange RangeOfCounts(const uint32_t* counts) {
  ByteRange range{0, 255};
  while (range.least < 255 && counts[range.least] == 0) ++range.least;
  while (range.greatest > 0 && counts[range.greatest] == 0) --range.greatest;
  return range;
}

// Returns the new value of byte x, which is arbitrary if the image has no x.
LEAT_PIXEL uint8_t EqualizedByte(const uint32_t* counts, int32_t x) {
  const ByteRange range = RangeOfCounts(counts);
  if (x <= range.least || x > range.greatest)
    return static_cast<uint8_t>(range.least == range.greatest ? x : 0);
  uint32_t above = 0, upto = 0;
  for (int32_t i = range.least + 1; i <= range.greatest; ++i) {
    above += counts[i];
    if (i <= x) upto += counts[i];
  }
  return Equalized(upto, above);
}
LEAT_PIXEL uint8_t AutoContrastedByte(const uint32_t* counts, int32_t x) {
  const ByteRange range = RangeOfCounts(counts);
  if (x < range.least || x > range.greatest) return 0;
  return AutoContrasted(x, range.least, range.greatest);
}
// Scales the distance from the mean of gray.
LEAT_PIXEL uint8_t ContrastedByte(const ByteTableRow& row,
                                  const uint32_t* counts, int32_t x) {
  double mean = 0;
  for (uint32_t c = 0; c < row.channels; ++c) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 256; ++i) sum += i * counts[256 * c + i];
    mean = AddGray(mean, sum, row.channels, c);
  }
  const double centre = mean / row.pixels;
  const double factor = row.factor;
  return ByteOf(Linear(static_cast<float>(x), row.factor,
                       ContrastConstant(centre, factor)));
}

// Computes one entry of the tables, 256 per channel.
LEAT_PIXEL void ByteTableThread(uint64_t rows, uint32_t thread,
                                uint32_t index) {
  const ByteTableRow& row =
      reinterpret_cast<const ByteTableRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const auto* const counts =
      reinterpret_cast<const uint32_t*>(AtAddress(row.counts));
  const uint32_t* const own = counts + thread / 256 * 256;
  const auto x = static_cast<int32_t>(thread % 256);
  const auto byte = static_cast<uint8_t>(x);
  uint8_t result = byte;
  switch (row.kind) {
    case ByteMap::kSame:
      break;
    case ByteMap::kLinear:
      result = ByteOf(Linear(static_cast<float>(x), row.factor, row.constant));
      break;
    case ByteMap::kMask:
      result = static_cast<uint8_t>(byte & row.number);
      break;
    case ByteMap::kSolarize:
      result = Solarized(byte, row.number);
      break;
    case ByteMap::kSolarizeAdd:
      result = SolarizedByAdding(byte, row.number);
      break;
    case ByteMap::kAutoContrast:
      result = AutoContrastedByte(own, x);
      break;
    case ByteMap::kContrast:
      result = ContrastedByte(row, counts, x);
      break;
    case ByteMap::kEqualize:
      result = EqualizedByte(own, x);
      break;
  }
  *AtAddress(row.head.out + thread) = result;
}

// Maps one element by its channel's table.
LEAT_PIXEL void ByteLookupThread(uint64_t rows, uint32_t thread,
                                 uint32_t index) {
  const ByteLookupRow& row =
      reinterpret_cast<const ByteLookupRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const uint32_t at =
      256 * (thread % row.channels) + *AtAddress(row.in + thread);
  *AtAddress(row.head.out + thread) = *AtAddress(row.tables + at);
}

// Beyond its edge the image is reflected, without repeating the edge.
LEAT_PIXEL int32_t SharpenPlace(int32_t at, int32_t size) {
  if (size == 1) return 0;
  return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

// Sharpens one element.
LEAT_PIXEL void SharpenThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const SharpenRow& row =
      reinterpret_cast<const SharpenRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const int32_t channel = static_cast<int32_t>(thread) % row.channels;
  const int32_t pixel = static_cast<int32_t>(thread) / row.channels;
  const int32_t y = pixel / row.width, x = pixel % row.width;
  const uint8_t* const in = AtAddress(row.in);
  int32_t neighbours = -int32_t{in[thread]};
  for (int32_t dy = -1; dy <= 1; ++dy)
    for (int32_t dx = -1; dx <= 1; ++dx) {
      const int32_t from = SharpenPlace(y + dy, row.height) * row.width +
                           SharpenPlace(x + dx, row.width);
      neighbours += in[from * row.channels + channel];
    }
  *AtAddress(row.head.out + thread) =
      Sharpened(in[thread], neighbours, row.weights);
}

}  // namespace leat::worker
