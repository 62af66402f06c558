// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/huffman.h"

#include <algorithm>
#include <numeric>

namespace leat::worker {

bool HuffmanCode::IsOf(const JHUFF_TBL& table) const {
  if (!built_) return false;
  const size_t count =
      static_cast<size_t>(std::accumulate(table.bits + 1, table.bits + 17, 0));
  return count <= symbols_.size() &&
         std::equal(counts_.begin() + 1, counts_.end(), table.bits + 1) &&
         std::equal(table.huffval, table.huffval + count, symbols_.begin());
}

bool HuffmanCode::Build(const JHUFF_TBL& table) {
  built_ = false;
  uint32_t code = 0, next = 0;
  for (size_t length = 1; length <= 16; ++length, code <<= 1) {
    counts_[length] = table.bits[length];
    offset_[length] = next - code;
    next += counts_[length];
    code += counts_[length];
    if (code > (1u << length) || next > symbols_.size()) return false;
    limit_[length] = counts_[length] == 0 ? 0 : code << (16 - length);
  }
  std::copy(table.huffval, table.huffval + symbols_.size(), symbols_.begin());
  built_ = true;
  return true;
}

void HuffmanCode::WriteTo(CodeTable* table) const {
  *table = {};
  ForEachShort(
      CodeTable::kLookBits, [&](uint32_t code, int length, uint8_t symbol) {
        const int free = CodeTable::kLookBits - length;
        std::fill_n(table->look + (size_t{code} << free), size_t{1} << free,
                    static_cast<uint16_t>(length | symbol << 8));
      });
  std::ranges::copy(limit_, table->limit);
  std::ranges::copy(offset_, table->offset);
  std::ranges::copy(symbols_, table->symbols);
}

bool DcTable::Build(const JHUFF_TBL& table) {
  if (code_.IsOf(table)) return true;
  looks_over_ = false;
  if (!code_.Build(table)) return false;
  look_.fill(0);
  code_.ForEachShort(
      kDcLookupBits, [&](uint32_t code, int length, uint8_t symbol) {
        const int free = kDcLookupBits - length;
        std::fill_n(look_.begin() + (code << free), size_t{1} << free,
                    static_cast<uint16_t>(length | symbol << 8));
      });
  return true;
}

void DcTable::BuildOver() {
  if (looks_over_) return;
  over_.fill(kSkipNothing);
  code_.ForEachShort(kSkipBits, [&](uint32_t code, int length, uint8_t size) {
    if (length + size > kMostSkipped) return;
    const int free = kSkipBits - length;
    std::fill_n(over_.begin() + (code << free), size_t{1} << free,
                static_cast<uint16_t>(static_cast<unsigned>(length + size) |
                                      kSkipTurns));
  });
  looks_over_ = true;
}

namespace {

// Describes the coefficient that some bits begin with, for AcTable's entries.
struct Coefficient {
  uint8_t length = 0;  // of the code, and of its value if the value is known
  uint8_t symbol = 0;
  uint8_t far = 0;
  int8_t value = 0;
  bool whole = false;  // the value is known, and small enough for an entry
  bool ends = false;   // the block

  // `after`: the `bits` bits after the code.
  static Coefficient Of(int length, uint8_t symbol, uint32_t after, int bits) {
    constexpr int kMostBits = 5;  // of a value
    const int run = symbol >> 4, size = symbol & 15;
    Coefficient one{.length = static_cast<uint8_t>(length), .symbol = symbol};
    if (size > bits || size > kMostBits) return one;
    one.whole = true;
    one.ends = size == 0 && run != 15;
    one.far = static_cast<uint8_t>(run + 1);
    if (size > 0) {
      one.length = static_cast<uint8_t>(length + size);
      one.value =
          static_cast<int8_t>(ExtendedValue(after >> (bits - size), size));
    }
    return one;
  }
};

}  // namespace

bool AcTable::Build(const JHUFF_TBL& table) {
  if (code_.IsOf(table)) return true;
  looks_over_ = false;
  if (!code_.Build(table)) return false;
  // Codes that are longer than the table have the entry 0 there.
  std::array<Coefficient, size_t{1} << kLookupBits> one{};
  code_.ForEachShort(
      kLookupBits, [&](uint32_t code, int length, uint8_t symbol) {
        const int free = kLookupBits - length;
        const size_t first = size_t{code} << free;
        for (uint32_t i = 0; i < 1u << free; ++i)
          one[first + i] = Coefficient::Of(length, symbol, i, free);
      });
  for (uint32_t next = 0; next < look_.size(); ++next) {
    const Coefficient& first = one[next];
    if (first.ends) {
      // A zero in the next place changes nothing.
      look_[next] = first.length | 1u << 6 | kEnd << 12;
      continue;
    }
    if (!first.whole) {
      look_[next] = first.length | Entry::kAlone << 6 |
                    static_cast<uint32_t>(first.symbol) << 12;
      continue;
    }
    // Zeros after the bits may look like a code, which is then too long.
    Coefficient second = one[next << first.length & (look_.size() - 1)];
    if (!second.whole || first.length + second.length > kLookupBits)
      second = {.value = first.value};
    const unsigned both =
        first.far + (second.ends ? kEnd : unsigned{second.far});
    look_[next] = static_cast<uint32_t>(first.length + second.length) |
                  uint32_t{first.far} << 6 | both << 12 |
                  (static_cast<uint32_t>(first.value) & 63) << 19 |
                  (static_cast<uint32_t>(second.value) & 63) << 25;
  }
  return true;
}

void AcTable::BuildOver() {
  if (looks_over_) return;
  // Indexed by the next bits: the code's length and its symbol. 0: it is
  // longer.
  std::array<uint16_t, size_t{1} << kSkipBits> codes{};
  code_.ForEachShort(kSkipBits, [&](uint32_t code, int length, uint8_t symbol) {
    const int free = kSkipBits - length;
    std::fill_n(codes.begin() + (code << free), size_t{1} << free,
                static_cast<uint16_t>(length | symbol << 8));
  });
  for (uint32_t next = 0; next < over_.size(); ++next) {
    unsigned taken = 0, far = 0;
    uint16_t entry = kSkipNothing;
    // The bits of the last value may lie beyond the bits that are looked up.
    while (taken < kSkipBits) {
      const unsigned code = codes[next << taken & (over_.size() - 1)];
      const unsigned length = code & 0xff;
      const unsigned size = code >> 8 & 15, run = code >> 12;
      // Zeros after the bits may look like a code, which is then too long.
      if (length == 0 || taken + length > kSkipBits ||
          taken + length + size > kMostSkipped)
        break;
      taken += length + size;
      const bool ends = size == 0 && run != 15;
      if (!ends) far += run + 1;
      if (far >= SkipFar(kSkipNothing)) break;
      entry = static_cast<uint16_t>(taken | far << 8 | (ends ? kSkipTurns : 0));
      if (ends) break;
    }
    over_[next] = entry;
  }
  looks_over_ = true;
}

namespace {

// Building tables takes as long as decoding some hundreds of blocks; for crops
// of long scans they save more.
constexpr size_t kWorthLookingOver = size_t{64} << 10;
constexpr size_t kWorthBesideAnIndex = size_t{256} << 10;

}  // namespace

bool HuffmanTables::Build(const jpeg_decompress_struct& cinfo,
                          size_t scan_bytes) {
  for (int i = 0; i < cinfo.comps_in_scan; ++i) {
    const jpeg_component_info& component = *cinfo.cur_comp_info[i];
    const int d = component.dc_tbl_no, a = component.ac_tbl_no;
    if (d < 0 || d >= NUM_HUFF_TBLS || a < 0 || a >= NUM_HUFF_TBLS)
      return false;
    const JHUFF_TBL* const dc = cinfo.dc_huff_tbl_ptrs[d];
    const JHUFF_TBL* const ac = cinfo.ac_huff_tbl_ptrs[a];
    if (dc == nullptr || ac == nullptr || !dc_[Index(d)].Build(*dc) ||
        !ac_[Index(a)].Build(*ac))
      return false;
    if (scan_bytes < (indexed_ ? kWorthBesideAnIndex : kWorthLookingOver))
      continue;
    dc_[Index(d)].BuildOver();
    ac_[Index(a)].BuildOver();
  }
  return true;
}

}  // namespace leat::worker
