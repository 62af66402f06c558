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
      kLookupBits, [&](uint32_t code, int length, uint8_t symbol) {
        const int free = kLookupBits - length;
        std::fill_n(look_.begin() + (code << free), size_t{1} << free,
                    static_cast<uint16_t>(length | symbol << 8));
      });
  return true;
}

void DcTable::BuildOver() {
  if (looks_over_) return;
  over_.fill(kSkipNothing);
  code_.ForEachShort(kSkipBits, [&](uint32_t code, int length, uint8_t size) {
    const int free = kSkipBits - length;
    if (size > free) return;
    const size_t first = size_t{code} << free;
    for (size_t i = 0; i < size_t{1} << free; ++i) {
      over_[first + i] = static_cast<uint16_t>(
          static_cast<unsigned>(length + size) | kSkipTurns);
      values_[first + i] = static_cast<int16_t>(
          size == 0
              ? 0
              : ExtendedValue(static_cast<uint32_t>(i >> (free - size)), size));
    }
  });
  looks_over_ = true;
}

bool AcTable::Build(const JHUFF_TBL& table) {
  if (code_.IsOf(table)) return true;
  looks_over_ = false;
  if (!code_.Build(table)) return false;
  look_.fill(0);
  code_.ForEachShort(kLookupBits,
                     [&](uint32_t code, int length, uint8_t symbol) {
                       Fill(code, length, symbol);
                     });
  return true;
}

void AcTable::Fill(uint32_t code, int length, uint8_t symbol) {
  const int free = kLookupBits - length;
  const int run = symbol >> 4, size = symbol & 15;
  const size_t first = size_t{code} << free;
  for (size_t i = 0; i < size_t{1} << free; ++i) {
    int32_t& entry = look_[first + i];
    if (size == 0) {
      entry = length | (run == 15 ? 16 : kEnd) << 8;
    } else if (size <= free) {
      const uint32_t value =
          static_cast<uint32_t>(i >> (free - size)) & ((1u << size) - 1);
      entry =
          (length + size) | (run + 1) << 8 | ExtendedValue(value, size) * 65536;
    } else {
      entry = length | kSymbolOnly | symbol << 16;
    }
  }
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
