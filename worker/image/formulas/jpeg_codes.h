// SPDX-License-Identifier: Apache-2.0
//
// The Huffman codes of a sequential JPEG scan, decoded by many threads: each
// begins at an MCU whose place and predictors are known from a seek index, or
// because a restart marker is before it.
//
// The rules are those of the host's decoder (worker/image/jpeg/scan/blocks.h):
// what libjpeg warns about and what it ignores are refused, and then libjpeg
// decodes the file. A sound code has one meaning, so what is accepted has the
// host's coefficients.
//
// C++ and CUDA compile this file. Tables and places are trusted, data are not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/pointwise.h"

namespace leat::worker {

// A Huffman code (ITU-T T.81, annex C) as kernels look it up.
struct CodeTable {
  static constexpr int kLookBits = 10;
  // Indexed by the next bits: the code's length, and its symbol << 8. 0: the
  // code is longer, or there is none.
  uint16_t look[1 << kLookBits];
  // Indexed by length: the first 16 bits after its codes, 0 without any, and
  // the offset from a code to its symbol.
  uint32_t limit[17];
  uint32_t offset[17];
  uint8_t symbols[256];
};

// A seek index has a place for each so many MCUs of a row.
inline constexpr uint32_t kSeekStep = 16;

// A place at which decoding can begin: the bits from the begin of the data, as
// scan/bits.h counts them, and each component's DC predictor.
struct CodePlace {
  uint32_t bit = 0;
  int16_t predictors[4] = {};
};

// The MCUs that a thread decodes, counted row after row from the file's first.
struct CodeRun {
  CodePlace begin;
  uint32_t first = 0, end = 0;
};

// The next bits of a scan (ITU-T T.81, B.1.1.5): the 0 after a byte 0xff is
// dropped, and any other byte after it ends the data. Bits after the end are 0.
struct CodeBits {
  const uint8_t* at;  // the next byte
  const uint8_t* end;
  uint64_t bits = 0;    // the next bits, from the top
  int32_t count = 0;    // how many bits are in `bits`
  int32_t padding = 0;  // zeros given after the data ended

  // Provides the bits of a code and of the value after it: 16 and 15.
  LEAT_PIXEL void Refill() {
    if (count >= 32) return;
    if (IsAligned() && end - at >= 4) {
      // Little-endian, on every device and host that runs this.
      const uint32_t word = *reinterpret_cast<const uint32_t*>(at);
      if (!HasFf(word)) {
        const uint32_t next = word << 24 | (word << 8 & 0xff0000) |
                              (word >> 8 & 0xff00) | word >> 24;
        bits |= uint64_t{next} << (32 - count);
        count += 32;
        at += 4;
        return;
      }
    }
    RefillByByte();
  }
  // REQUIRES: number <= count, for both.
  LEAT_PIXEL void Drop(int32_t number) {
    bits <<= number;
    count -= number;
  }
  // REQUIRES: 0 < number <= 32.
  LEAT_PIXEL uint32_t Take(int32_t number) {
    const auto taken = static_cast<uint32_t>(bits >> (64 - number));
    Drop(number);
    return taken;
  }
  // True if more bits were taken than the data have.
  LEAT_PIXEL bool Overrun() const { return padding > count; }
  // Returns the offset of the next bit, as CodePlace has it. REQUIRES: not
  // Overrun(); the bits were taken from a byte at `begin` or after it.
  LEAT_PIXEL uint32_t Offset(const uint8_t* begin) const {
    const int32_t unread = count - padding;
    const uint8_t* byte = at;
    for (int32_t back = (unread + 7) / 8; back > 0; --back) {
      --byte;
      if (*byte == 0 && byte > begin && byte[-1] == 0xff) --byte;
    }
    return static_cast<uint32_t>(8 * (byte - begin) + (8 - unread % 8) % 8);
  }

 private:
  LEAT_PIXEL bool IsAligned() const {
    return reinterpret_cast<uintptr_t>(at) % 4 == 0;
  }
  LEAT_PIXEL static bool HasFf(uint32_t bytes) {
    constexpr uint32_t kOnes = 0x01010101;
    return ((~bytes - kOnes) & bytes & (kOnes << 7)) != 0;
  }
  // Until words can be taken again.
  LEAT_PIXEL void RefillByByte() {
    while (count <= 56 && (count < 32 || !IsAligned())) {
      uint64_t byte = 0;
      if (at < end && *at != 0xff) {
        byte = *at++;
      } else if (end - at >= 2 && at[1] == 0) {
        byte = 0xff;
        at += 2;
      } else {
        padding += 8;
      }
      bits |= byte << (56 - count);
      count += 8;
    }
  }
};

// Takes the next code. Returns false if there is none. REQUIRES: bits were
// refilled.
LEAT_PIXEL bool TakeSymbol(const CodeTable& table, CodeBits& bits,
                           uint32_t* symbol) {
  const uint32_t entry = table.look[bits.bits >> (64 - CodeTable::kLookBits)];
  if (entry != 0) {
    *symbol = entry >> 8;
    bits.Drop(static_cast<int32_t>(entry & 0xff));
    return true;
  }
  const auto next = static_cast<uint32_t>(bits.bits >> 48);
  for (int32_t length = CodeTable::kLookBits + 1; length <= 16; ++length) {
    if (next >= table.limit[length]) continue;
    const uint32_t at = (next >> (16 - length)) + table.offset[length];
    *symbol = table.symbols[at & 255];
    bits.Drop(length);
    return true;
  }
  return false;
}

// Takes a value of `size` bits (ITU-T T.81, F.2.2.1). REQUIRES: 0 < size < 16.
LEAT_PIXEL int32_t TakeValue(CodeBits& bits, int32_t size) {
  const auto value = static_cast<int32_t>(bits.Take(size));
  return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

// Decodes a block into 64 words that are 0, in the order of coding; `block`
// nullptr: only *predictor is wanted. Returns false if the code is refused.
LEAT_PIXEL bool DecodeCodes(const CodeTable& dc, const CodeTable& ac,
                            CodeBits& bits, int32_t* predictor,
                            int16_t* block) {
  uint32_t symbol = 0;
  bits.Refill();
  if (!TakeSymbol(dc, bits, &symbol) || symbol > 15) return false;
  if (symbol > 0) *predictor += TakeValue(bits, static_cast<int32_t>(symbol));
  const auto first = static_cast<int16_t>(*predictor);
  if (*predictor != first) return false;
  if (block != nullptr) block[0] = first;
  uint32_t at = 1;
  while (at < 64) {
    bits.Refill();
    if (!TakeSymbol(ac, bits, &symbol)) return false;
    const uint32_t run = symbol >> 4;
    const auto size = static_cast<int32_t>(symbol & 15);
    if (size == 0 && run != 15) return true;  // the rest is 0
    at += run;
    if (size > 0) {
      if (at >= 64) return false;
      const int32_t value = TakeValue(bits, size);
      if (block != nullptr) block[at] = static_cast<int16_t>(value);
    }
    ++at;
  }
  return at == 64;
}

}  // namespace leat::worker
