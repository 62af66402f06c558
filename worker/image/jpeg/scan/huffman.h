// SPDX-License-Identifier: Apache-2.0
//
// Tables that give the meaning of the next bits of a scan.
//
// ITU-T T.81, F.2.2: a code of up to 16 bits gives a symbol. A DC symbol is the
// number of bits, after the code, of the difference to the block's DC
// predictor, which is the DC coefficient of the component's previous block. An
// AC symbol has a number of zeros in its upper half, and in its lower half the
// number of bits of the coefficient that follows these zeros; 0x00 ends the
// block, 0xf0 means 16 zeros.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/formulas/jpeg_codes.h"

namespace leat::worker {

// DC codes of up to this many bits are looked up at once.
inline constexpr int kDcLookupBits = 10;

// Where the coefficients are not wanted, kSkipBits bits are looked up, and a
// value that begins in them may be skipped with them, up to kMostSkipped bits.
inline constexpr int kSkipBits = 12;
inline constexpr int kMostSkipped = 18;

// An entry of a table for that. Bits 0 … 4 are the number of bits it skips, 8 …
// 13 the number of AC coefficients of the block it skips. With kSkipTurns, the
// next bits are for the other kind of table: a DC code has ended, or a block.
// kSkipNothing: the bits have to be looked up in another way.
inline constexpr unsigned kSkipTurns = 0x8000;
inline constexpr unsigned kSkipNothing = 0x3f00;
constexpr unsigned SkipLength(unsigned entry) { return entry & 0x1f; }
constexpr unsigned SkipFar(unsigned entry) { return entry >> 8 & 0x3f; }
using SkipTable = std::array<uint16_t, size_t{1} << kSkipBits>;

// Returns the value of `bits` bits, as a scan codes it.
inline int32_t ExtendedValue(uint32_t value, int bits) {
  return value < (1u << (bits - 1))
             ? static_cast<int32_t>(value) - (1 << bits) + 1
             : static_cast<int32_t>(value);
}

// The code itself, in which both kinds of tables look up longer codes.
class HuffmanCode {
 public:
  // Returns false if the counts make no code.
  bool Build(const JHUFF_TBL& table);
  // True if it was built from the same codes.
  bool IsOf(const JHUFF_TBL& table) const;
  // Finds the code at the begin of 64 bits: returns its length and sets its
  // symbol. 0: there is none.
  int Find(uint64_t bits, uint8_t* symbol) const {
    const auto next = static_cast<uint32_t>(bits >> 48);
    for (size_t length = 1; length <= 16; ++length) {
      if (next >= limit_[length]) continue;
      const uint32_t at = (next >> (16 - length)) + offset_[length];
      *symbol = symbols_[at & 255];
      return static_cast<int>(length);
    }
    return 0;
  }

  // REQUIRES: Build was true.
  void WriteTo(CodeTable* table) const;
  // Calls function(code, length, symbol) for codes of up to `bits` bits.
  template <class Function>
  void ForEachShort(int bits, Function function) const {
    uint32_t code = 0;
    size_t next = 0;
    for (int length = 1; length <= bits; ++length, code <<= 1)
      for (int i = 0; i < counts_[static_cast<size_t>(length)]; ++i)
        function(code++, length, symbols_[next++]);
  }

 private:
  bool built_ = false;
  std::array<uint8_t, 17> counts_{};  // per length
  std::array<uint8_t, 256> symbols_{};
  // Indexed by length: the first 16 bits after its codes, and the offset from a
  // code to its symbol.
  std::array<uint32_t, 17> limit_{}, offset_{};
};

class DcTable {
 public:
  bool Build(const JHUFF_TBL& table);
  // Returns the code's length in the low byte and the difference's in the high
  // one. 0: the code is longer than kDcLookupBits.
  uint16_t Look(uint64_t bits) const {
    return look_[bits >> (64 - kDcLookupBits)];
  }
  const HuffmanCode& code() const { return code_; }

  // The table of SkipLength entries. An entry's bits include the difference.
  const uint16_t* over() const { return over_.data(); }
  // True if BuildOver was called for this code.
  bool looks_over() const { return looks_over_; }
  // REQUIRES: Build was true.
  void BuildOver();

 private:
  HuffmanCode code_;
  bool looks_over_ = false;
  std::array<uint16_t, size_t{1} << kDcLookupBits> look_{};
  SkipTable over_{};
};

class AcTable {
 public:
  // Codes and values of up to this many bits together are looked up at once.
  static constexpr int kLookupBits = 11;
  // Advances a block beyond what any run reaches.
  static constexpr unsigned kEnd = 96;

  // Says what the next bits are: one coefficient, or two, each after zeros. The
  // end of a block counts as a second one of value 0, and 16 zeros as a first or
  // second one. All other codes are alone, and longer ones, too: kAlone.
  class Entry {
   public:
    static constexpr unsigned kAlone = 63;  // a first advance beyond any block
    explicit Entry(uint32_t word) : word_(word) {}

    // The bits that the coefficients take; of a code that is alone, the bits of
    // the code without its value: 0 if it is longer than kLookupBits.
    int length() const { return static_cast<int>(word_ & 63); }
    // By how many coefficients the first one, and both, advance. The latter is
    // kEnd more if the block ends.
    unsigned first() const { return word_ >> 6 & 63; }
    unsigned both() const { return word_ >> 12 & 127; }
    // The values. If there is no second one, it repeats the first.
    int32_t value() const { return static_cast<int32_t>(word_ << 7) >> 26; }
    int32_t second_value() const {
      return static_cast<int32_t>(word_ << 1) >> 26;
    }
    // The symbol of a code that is alone.
    uint8_t symbol() const { return static_cast<uint8_t>(word_ >> 12); }

   private:
    uint32_t word_;
  };

  bool Build(const JHUFF_TBL& table);
  Entry Look(uint64_t bits) const {
    return Entry(look_[bits >> (64 - kLookupBits)]);
  }
  const HuffmanCode& code() const { return code_; }

  // Returns the skip entry for the first of 64 bits.
  unsigned LookOver(uint64_t bits) const {
    return over_[bits >> (64 - kSkipBits)];
  }
  const uint16_t* over() const { return over_.data(); }
  // True if BuildOver was called for this code.
  bool looks_over() const { return looks_over_; }
  // REQUIRES: Build was true.
  void BuildOver();

 private:
  HuffmanCode code_;
  bool looks_over_ = false;
  std::array<uint32_t, size_t{1} << kLookupBits> look_{};
  SkipTable over_{};
};

// The tables of a decoder: most files have the same tables as the file before.
class HuffmanTables {
 public:
  // Sets whether an index leads to the wanted parts of the next scans, so that
  // less of them is skipped.
  void SetIndexed(bool indexed) { indexed_ = indexed; }
  // Builds the tables that the scan uses. Returns false if one is missing or
  // makes no code. `scan_bytes`: its length; a long scan is worth skip tables.
  bool Build(const jpeg_decompress_struct& cinfo, size_t scan_bytes);
  // REQUIRES: Build returned true for a scan that uses the table.
  const DcTable& dc(int number) const { return dc_[Index(number)]; }
  const AcTable& ac(int number) const { return ac_[Index(number)]; }

 private:
  static size_t Index(int number) {
    return static_cast<size_t>(number) % NUM_HUFF_TBLS;
  }
  bool indexed_ = false;
  std::array<DcTable, NUM_HUFF_TBLS> dc_;
  std::array<AcTable, NUM_HUFF_TBLS> ac_;
};

}  // namespace leat::worker
