// SPDX-License-Identifier: Apache-2.0
//
// Decodes the code of one block (ITU-T T.81, F.2.2), strictly: it refuses codes
// that libjpeg warns about, and those that libjpeg ignores (an unknown code, a
// coefficient beyond the 63rd). Such a file is decoded by libjpeg itself.
#pragma once

#include <array>
#include <cstdint>

#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/huffman.h"

namespace leat::worker {

// The place in a block of each coefficient, in the order of coding (T.81,
// figure A.6). The last place is repeated at the end: coefficients that go too
// far are written there before the block is refused, and the zero that stands
// for the end of a block.
inline constexpr std::array<uint8_t, 160> kZigzag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19,
    26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56,
    57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
    39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// Sinks receive coefficients: `at` is the index in the order of coding, 1 … 63,
// or up to 79 in a block that is refused. A sink that kTakesZeros also receives
// coefficients of value 0, at up to 159, and one coefficient twice.
struct DropSink {
  static constexpr bool kTakesZeros = true;
  void Dc(int32_t) {}
  void Ac(unsigned, int32_t) {}
};
struct StoreSink {
  static constexpr bool kTakesZeros = true;
  JCOEF* block;  // all zero
  void Dc(int32_t value) { block[0] = static_cast<JCOEF>(value); }
  void Ac(unsigned at, int32_t value) {
    block[kZigzag[at]] = static_cast<JCOEF>(value);
  }
};

// Decodes one coefficient, or zeros, or the end of the block. `entry`: that of
// the next bits. Returns false if there is no such code.
template <class Sink>
inline bool DecodeAlone(ScanBits& scan, const AcTable& table,
                        AcTable::Entry entry, unsigned* at, Sink& sink) {
  scan.Refill();  // a code has 16 bits, and its value 15
  uint8_t symbol = entry.symbol();
  int length = entry.length();
  if (length == 0 || entry.first() != AcTable::Entry::kAlone)
    length = table.code().Find(scan.bits, &symbol);
  if (length == 0) return false;
  scan.Drop(length);
  const unsigned run = symbol >> 4;
  const int size = symbol & 15;
  if (size == 0) {
    *at += run == 15 ? 16 : AcTable::kEnd;
    return true;
  }
  *at += run;
  sink.Ac(*at, ExtendedValue(scan.Take(size), size));
  ++*at;
  return true;
}

// Decodes the begin of a block. Returns false if the code is wrong. Inline,
// since it is called for each block. REQUIRES: scan has 31 bits: a code has up
// to 16, and its difference 15.
__attribute__((always_inline)) inline bool TakeDc(ScanBits& scan,
                                                  const DcTable& dc,
                                                  int32_t* predictor) {
  int size = 0;
  if (const uint16_t entry = dc.Look(scan.bits); entry != 0) {
    size = entry >> 8;
    scan.Drop(entry & 0xff);
  } else {
    uint8_t symbol = 0;
    const int length = dc.code().Find(scan.bits, &symbol);
    if (length == 0) return false;
    size = symbol;
    scan.Drop(length);
  }
  if (size > 15) return false;
  // ExtendedValue without a branch, since neither the sign nor a size of 0, whose
  // value is 0, can be predicted.
  const auto value = static_cast<int32_t>(scan.bits >> 1 >> (63 - size));
  const auto below = static_cast<int32_t>((scan.bits >> 63) - 1);
  *predictor += value + (below & (1 - (1 << size)));
  scan.Drop(size);
  return *predictor == static_cast<JCOEF>(*predictor);
}

// The same with any number of bits.
__attribute__((always_inline)) inline bool DecodeDc(ScanBits& scan,
                                                    const DcTable& dc,
                                                    int32_t* predictor) {
  scan.Refill();
  return TakeDc(scan, dc, predictor);
}

// Returns false if the code is wrong; *bits is then unspecified.
template <class Sink>
inline bool DecodeBlock(ScanBits* bits, const DcTable& dc, const AcTable& ac,
                        int32_t* predictor, Sink& sink) {
  ScanBits scan = *bits;
  if (!DecodeDc(scan, dc, predictor)) return false;
  sink.Dc(*predictor);
  constexpr int kAtOnce = 56 / AcTable::kLookupBits;
  unsigned at = 1;
  while (at < DCTSIZE2) {
    scan.Refill();
    for (int i = 0; i < kAtOnce && at < DCTSIZE2; ++i) {
      const AcTable::Entry entry = ac.Look(scan.bits);
      const unsigned first = at + entry.first();
      // The next block begins after the 63rd coefficient.
      if (first >= DCTSIZE2) {
        if (!DecodeAlone(scan, ac, entry, &at, sink)) return false;
        break;
      }
      at += entry.both();
      scan.Drop(entry.length());
      if (Sink::kTakesZeros || entry.value() != 0)
        sink.Ac(first - 1, entry.value());
      if (Sink::kTakesZeros || (entry.second_value() != 0 && at != first))
        sink.Ac(at - 1, entry.second_value());
    }
  }
  bits->ContinueAt(scan);
  return at == DCTSIZE2 || at > AcTable::kEnd;
}

// Skips the rest of a block, from the coefficient `at` on. It is as strict as
// DecodeBlock: what one step skips ends before the 64th coefficient. REQUIRES:
// ac.looks_over().
inline bool SkipAc(ScanBits* bits, const AcTable& ac, unsigned at) {
  DropSink sink;
  ScanBits scan = *bits;
  while (at < DCTSIZE2) {
    scan.Refill();
    unsigned over = ac.LookOver(scan.bits);
    while (scan.count >= kMostSkipped && at + SkipFar(over) < DCTSIZE2) {
      scan.Drop(static_cast<int>(SkipLength(over)));
      at += SkipFar(over);
      if ((over & kSkipTurns) != 0) {
        bits->ContinueAt(scan);
        return true;
      }
      over = ac.LookOver(scan.bits);
    }
    scan.Refill();
    const AcTable::Entry entry = ac.Look(scan.bits);
    if (at + entry.first() >= DCTSIZE2) {
      if (!DecodeAlone(scan, ac, entry, &at, sink)) return false;
      continue;
    }
    scan.Drop(entry.length());
    at += entry.both();
  }
  bits->ContinueAt(scan);
  return at == DCTSIZE2 || at > AcTable::kEnd;
}

// Like DecodeBlock, where only the DC coefficient is wanted; *predictor then
// holds it.
inline bool SkipBlock(ScanBits* bits, const DcTable& dc, const AcTable& ac,
                      int32_t* predictor) {
  DropSink sink;
  if (!ac.looks_over()) return DecodeBlock(bits, dc, ac, predictor, sink);
  return DecodeDc(*bits, dc, predictor) && SkipAc(bits, ac, 1);
}

}  // namespace leat::worker
