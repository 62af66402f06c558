// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic from a JPEG's coefficients to its pixels, with the bits of
// libjpeg-turbo: its accurate integer IDCT ("ISLOW"), its fancy upsampling and
// its colours. It uses integers only, so every device gives the same bits.
//
// Sources: libjpeg-turbo 2.1.5. The IDCT is that of C. Loeffler, A. Ligtenberg
// and G. Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications"
// (ICASSP 1989), with 13 bits of fractions, as in jidctint.c; its sums are
// ordered as in simd/x86_64/jidctint-*.asm, which makes no difference unless
// something overflows. Upsampling is the triangle filter of jdsample.c, colours
// are those of jdcolor.c.
//
// libjpeg-turbo has two IDCTs, and the processor decides which one runs. The
// one in C has wide integers, and takes a sample modulo 1024 before clamping
// it. The ones in SIMD multiply 16 bits by 16, have 16 bits for the sums of two
// inputs of either pass and for the results of the first pass, and clamp. They
// differ only for blocks that no encoder makes from pixels. IsExactBlock is
// true if these conditions hold, and then they agree:
//
//   1. Where the inputs of a pass and the sums of pairs of them fit 16 bits,
//      nothing exceeds 32 bits. The largest sum has the coefficients 4433 and
//      10704 (even part), 8192 (its other half), 20995 and 4177 (odd part),
//      6436 and 9633 (its common part), each times at most 2^15, and the
//      rounding: 64570 × 2^15 + 2^17 < 2^31. So the sums of SIMD and C agree.
//   2. The results of the first pass fit 16 bits: packing saturates nothing.
//   3. A sample, before 128 is added to it, is in -512 … 511: then "modulo 1024
//      and clamped" equals "clamped".
//
// All three hold where half of |DC| and all |AC|, dequantised, add up to at
// most kSurelyExact. A pass scales its first input by at most 1 and the others
// by at most √2; on top of that the first pass scales by four, and both
// together by an eighth. So inputs and their pairs are at most 2 × 2000; the
// results of the first pass, and pairs of them, at most 4 × √2 × 4000 + 2 <
// 2^15; a sample at most DC / 8 + AC / 4 ≤ 500, and less than 4 more for the
// rounding of the constants and of both passes. Other blocks are computed once,
// and every value is checked.
//
// C++ and CUDA compile this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// --- Blocks -----------------------------------------------------------------

// BlockCode says how a block's coefficients are written. kBytes is the code of
// kept coefficients (jpeg/forms/coefficients.h), so these are copied as they
// are. kWords has little-endian words of 16 bits, which are faster to write:
// the DC coefficient comes first; then each other coefficient that is not zero
// has its index in the order of coding in the upper 6 bits and its value in the
// lower 10. Where 10 bits are too few, the word is the index, and the next one
// the value. kPlain is 64 words of 16 bits, in the order of coding: those that a
// kernel decodes.
enum class BlockCode : uint32_t { kBytes, kWords, kPlain };

inline constexpr uint32_t kWordBits = 10;
inline constexpr int32_t kWordValues = 1 << kWordBits;  // -512 … 511

LEAT_PIXEL uint32_t LoadWord(const uint8_t* from) {
  return from[0] | uint32_t{from[1]} << 8;
}
LEAT_PIXEL int32_t LoadSignedWord(const uint8_t* from) {
  return static_cast<int16_t>(static_cast<uint16_t>(LoadWord(from)));
}

// Walks the block whose bytes are [from, end), of kWords or kBytes: calls
// taker.Dc(value), then taker.Ac(at, value) for coefficients in the order of
// coding, 0 < at < 64. Returns false if the bytes are not a block. It never
// reads outside them, whatever they contain.
template <class Taker>
LEAT_PIXEL bool WalkWords(const uint8_t* from, const uint8_t* end,
                          Taker& taker) {
  if (end - from < 2) return false;
  taker.Dc(LoadSignedWord(from));
  for (from += 2; end - from >= 2; from += 2) {
    const uint32_t word = LoadWord(from);
    uint32_t at = word >> kWordBits;
    auto value = static_cast<int32_t>(word & (kWordValues - 1));
    if (at == 0) {
      at = word;
      from += 2;
      if (at == 0 || at >= 64 || end - from < 2) return false;
      value = LoadSignedWord(from);
    } else {
      value = (value ^ kWordValues / 2) - kWordValues / 2;
    }
    taker.Ac(at, value);
  }
  return from == end;
}
template <class Taker>
LEAT_PIXEL bool WalkBytes(const uint8_t* from, const uint8_t* end,
                          Taker& taker) {
  if (end - from < 3) return false;
  taker.Dc(LoadSignedWord(from + 1));
  from += 3;
  uint32_t at = 1;
  while (from < end) {
    const uint32_t code = *from++;
    int32_t value;
    if (code < 0xf0) {
      at += code >> 4;
      const auto place = static_cast<int32_t>(code & 15);
      value = place < 8 ? place - 8 : place - 7;
    } else {
      const bool narrow = code == 0xf0;
      if (code > 0xf1 || end - from < (narrow ? 2 : 3)) return false;
      at += from[0];
      value = narrow ? static_cast<int8_t>(from[1]) : LoadSignedWord(from + 1);
      from += narrow ? 2 : 3;
    }
    if (at >= 64) return false;
    taker.Ac(at++, value);
  }
  return true;
}

inline constexpr uint32_t kPlainBytes = 64 * sizeof(int16_t);
// REQUIRES: `from` has kPlainBytes, and is aligned to 8.
template <class Taker>
LEAT_PIXEL void WalkPlain(const uint8_t* from, Taker& taker) {
  for (uint32_t first = 0; first < 64; first += 4, from += 8) {
    const uint64_t words = *reinterpret_cast<const uint64_t*>(from);
    if (words == 0) continue;
    for (uint32_t i = 0; i < 4; ++i) {
      const auto value = static_cast<int16_t>(words >> (16 * i));
      if (value != 0) taker.Ac(first + i, value);
    }
  }
}

template <class Taker>
LEAT_PIXEL bool WalkBlock(BlockCode code, const uint8_t* from,
                          const uint8_t* end, Taker& taker) {
  return code == BlockCode::kWords ? WalkWords(from, end, taker)
                                   : WalkBytes(from, end, taker);
}

// The quantiser of a coefficient and its place in a block, for each coefficient
// in the order of coding: place << 16 | quantiser.
LEAT_PIXEL uint32_t BlockStep(uint32_t place, uint32_t quantiser) {
  return place << 16 | quantiser;
}

// Writes dequantised values into a block of zeros, row after row. A product
// keeps its low 16 bits, which lose nothing if `fits`, as in blocks that are
// exact.
struct BlockFiller {
  const uint32_t* steps;  // 64 BlockSteps
  int16_t* block;
  bool fits = true;

  LEAT_PIXEL void Dc(int32_t value) { Ac(0, value); }
  LEAT_PIXEL void Ac(uint32_t at, int32_t value) {
    const uint32_t step = steps[at];
    const auto quantiser = static_cast<int32_t>(step & 0xffff);
    // 16 bits times 16: the product fits, since a value has 15 and a sign.
    const int32_t product = value * quantiser;
    const auto kept = static_cast<int16_t>(static_cast<uint32_t>(product));
    fits = fits && product == kept;
    block[step >> 16 & 63] = kept;
  }
};

// --- The inverse DCT --------------------------------------------------------

// One pass over eight coefficients; its results are scaled up by 13 bits.
LEAT_PIXEL void InverseDctLine(const int32_t in[8], int32_t out[8]) {
  const int32_t even0 = (in[0] + in[4]) * 8192;
  const int32_t even1 = (in[0] - in[4]) * 8192;
  const int32_t even2 = in[2] * 4433 - in[6] * 10704;
  const int32_t even3 = in[2] * 10703 + in[6] * 4433;
  const int32_t sums[4] = {even0 + even3, even1 + even2, even1 - even2,
                           even0 - even3};
  const int32_t a = in[7] + in[3], b = in[5] + in[1];
  const int32_t common_a = b * 9633 - a * 6436;
  const int32_t common_b = a * 9633 + b * 6437;
  const int32_t odd[4] = {
      in[1] * 4926 - in[7] * 7373 + common_b,
      in[3] * 4177 - in[5] * 20995 + common_a,
      -in[5] * 4176 - in[3] * 20995 + common_b,
      -in[7] * 4927 - in[1] * 7373 + common_a,
  };
  for (int i = 0; i < 4; ++i) {
    out[i] = sums[i] + odd[i];
    out[7 - i] = sums[i] - odd[i];
  }
}

LEAT_PIXEL int32_t Descaled(int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;  // arithmetic: rounds down
}
// The first pass keeps two bits of fraction; the second one drops them, and the
// three by which both passes scale.
inline constexpr int kFirstPassBits = 11, kSecondPassBits = 18;

LEAT_PIXEL uint8_t ClampedByte(int32_t value) {
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

LEAT_PIXEL bool FitsWord(int32_t value) {
  return value == static_cast<int16_t>(value);
}
// Point 1 above, for inputs that fit 16 bits. Where it does not hold, the
// inputs become 0, so that nothing overflows.
LEAT_PIXEL bool HasExactPairs(int32_t in[8]) {
  const bool exact = FitsWord(in[0] + in[4]) && FitsWord(in[0] - in[4]) &&
                     FitsWord(in[3] + in[7]) && FitsWord(in[1] + in[5]);
  for (int i = 0; i < 8; ++i) in[i] = exact ? in[i] : 0;
  return exact;
}

// The first pass, in place: down the columns. Returns true if it is exact by
// points 1 and 2.
LEAT_PIXEL bool InverseDctColumns(int16_t block[64]) {
  bool exact = true;
  for (int x = 0; x < 8; ++x) {
    int32_t in[8], out[8];
    for (int i = 0; i < 8; ++i) in[i] = block[8 * i + x];
    exact = HasExactPairs(in) && exact;
    InverseDctLine(in, out);
    for (int i = 0; i < 8; ++i) {
      out[i] = Descaled(out[i], kFirstPassBits);
      exact = exact && FitsWord(out[i]);
      block[8 * i + x] = static_cast<int16_t>(out[i]);
    }
  }
  return exact;
}
// The second pass over one row. Returns its samples, the first one in the
// lowest byte; sets *exact to false if it is not exact by points 1 and 3.
LEAT_PIXEL uint64_t InverseDctRow(const int16_t row[8], bool* exact) {
  int32_t in[8], out[8];
  for (int i = 0; i < 8; ++i) in[i] = row[i];
  *exact = HasExactPairs(in) && *exact;
  InverseDctLine(in, out);
  uint64_t samples = 0;
  for (int i = 0; i < 8; ++i) {
    out[i] = Descaled(out[i], kSecondPassBits);
    *exact = *exact && out[i] >= -512 && out[i] <= 511;
    samples |= uint64_t{ClampedByte(out[i] + 128)} << (8 * i);
  }
  return samples;
}

// Returns true if all of libjpeg-turbo's IDCTs make the same samples of these
// dequantised coefficients, row after row. Overwrites the block.
LEAT_PIXEL bool IsExactBlock(int16_t block[64]) {
  bool exact = InverseDctColumns(block);
  for (int y = 0; y < 8; ++y) InverseDctRow(block + 8 * y, &exact);
  return exact;
}

// A block in which half of |DC| and all |AC| add up to at most this is exact.
inline constexpr uint64_t kSurelyExact = 2000;

// --- Upsampling -------------------------------------------------------------

// Enlarges a component that has half of the image's samples, along one axis or
// both, to the size of the image. A pixel is ¾ of the sample that covers it and
// ¼ of the next sample on the pixel's side; at an edge the sample is its own
// neighbour. Rounding alternates from pixel to pixel.
struct NearSamples {
  int32_t near, far;
};
LEAT_PIXEL NearSamples SamplesOf(int32_t pixel, int32_t samples) {
  const int32_t near = pixel >> 1;
  const int32_t far = pixel % 2 == 0 ? near - 1 : near + 1;
  return {near, far < 0 ? 0 : far >= samples ? samples - 1 : far};
}
LEAT_PIXEL int32_t Weighted(int32_t near, int32_t far) {
  return 3 * near + far;
}
// Along one axis; across ("h2v1") and down ("h1v2") round in the same way.
LEAT_PIXEL uint8_t FinishOneAxis(int32_t sum, int32_t pixel) {
  return static_cast<uint8_t>((sum + 1 + pixel % 2) >> 2);
}
// Along both ("h2v2"): weighted down, then across, at column `pixel`.
LEAT_PIXEL uint8_t FinishBothAxes(int32_t sum, int32_t pixel) {
  return static_cast<uint8_t>((sum + 8 - pixel % 2) >> 4);
}

// --- Colours ----------------------------------------------------------------

// R, G, B, as they lie in memory in little-endian order, followed by 255.
LEAT_PIXEL uint32_t RgbxOf(uint8_t r, uint8_t g, uint8_t b) {
  return r | uint32_t{g} << 8 | uint32_t{b} << 16 | 0xff000000u;
}
// Converts Y, Cb, Cr as JFIF defines, with 16 bits of fractions.
LEAT_PIXEL uint32_t RgbxOfYcc(int32_t y, int32_t cb, int32_t cr) {
  constexpr int32_t kHalf = 1 << 15;
  cb -= 128;
  cr -= 128;
  return RgbxOf(ClampedByte(y + ((91881 * cr + kHalf) >> 16)),
                ClampedByte(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16)),
                ClampedByte(y + ((116130 * cb + kHalf) >> 16)));
}

}  // namespace leat::worker
