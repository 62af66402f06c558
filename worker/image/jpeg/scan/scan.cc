// SPDX-License-Identifier: Apache-2.0
//
// The shortest way to code a block is one code for its first coefficient, and
// for the other 63 a path from the first to the end: a code advances by 1 to 16
// coefficients and takes its own bits and those of the value after it, or it
// ends the block.
//
// In the data a 0xff byte is followed by 0, else by a marker's number; further
// 0xff bytes before either mean nothing. Restart marker i mod 8 follows
// interval i, whatever bytes are left over before it.
#include "worker/image/jpeg/scan/scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace leat::worker {
namespace {

constexpr int kCoefficients = 64;  // per block
constexpr uint8_t kFirstRestart = 0xd0;
constexpr uint64_t kEndless = std::numeric_limits<uint32_t>::max();

// Calls function(symbol, bits of its code) for each code of the table.
template <class Function>
void ForEachCode(const JHUFF_TBL& table, Function function) {
  size_t next = 0;
  for (unsigned bits = 1; bits <= 16; ++bits)
    for (unsigned i = 0; i < table.bits[bits] && next < 256; ++i)
      function(unsigned{table.huffval[next++]}, uint64_t{bits});
}

// Returns nullptr if the table is missing: libjpeg then reports that.
const JHUFF_TBL* TableOf(JHUFF_TBL* const (&tables)[NUM_HUFF_TBLS],
                         int number) {
  return number >= 0 && number < NUM_HUFF_TBLS ? tables[number] : nullptr;
}

uint64_t LeastOfFirst(const JHUFF_TBL* table) {
  if (table == nullptr) return 0;
  uint64_t least = kEndless;
  ForEachCode(*table, [&](unsigned symbol, uint64_t bits) {
    least = std::min(least, bits + symbol);
  });
  return least == kEndless ? 0 : least;
}

uint64_t LeastOfOthers(const JHUFF_TBL* table) {
  if (table == nullptr) return 0;
  uint64_t end = kEndless;
  std::array<uint64_t, 17> by;  // advancing by as many coefficients
  by.fill(kEndless);
  ForEachCode(*table, [&](unsigned symbol, uint64_t bits) {
    const unsigned run = symbol >> 4, value_bits = symbol & 15;
    uint64_t& least = value_bits == 0 && run < 15 ? end : by[run + 1];
    least = std::min(least, bits + value_bits);
  });
  std::array<uint64_t, kCoefficients + 16> from{};  // 0 after the last one
  for (size_t at = kCoefficients; at-- > 1;) {
    from[at] = end;
    for (size_t count = 1; count < by.size(); ++count)
      from[at] = std::min(from[at], by[count] + from[at + count]);
  }
  return from[1] >= kEndless ? 0 : from[1];
}

// Walks over entropy-coded data.
class Walker {
 public:
  explicit Walker(std::span<const std::byte> bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())),
        end_(at_ + bytes.size()) {}

  // Moves past the next marker, which it returns, or over `enough` bytes of
  // data. Returns 0 after that many bytes, or at the end of the bytes.
  uint8_t Next(uint64_t enough) {
    data_ = 0;
    while (at_ < end_ && data_ < enough) {
      const auto left = static_cast<size_t>(end_ - at_);
      const auto* const found =
          static_cast<const uint8_t*>(std::memchr(at_, 0xff, left));
      data_ += found == nullptr ? left : static_cast<size_t>(found - at_);
      at_ = found == nullptr ? end_ : found;
      while (at_ < end_ && *at_ == 0xff) ++at_;
      if (at_ == end_) break;
      if (const uint8_t marker = *at_++; marker != 0) return marker;
      ++data_;  // a 0xff that is data
    }
    return 0;
  }
  uint64_t data() const { return data_; }  // data bytes passed by Next

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
  uint64_t data_ = 0;
};

uint64_t Blocks(const jpeg_component_info& component, bool alone) {
  return alone ? 1
               : static_cast<uint64_t>(component.h_samp_factor) *
                     static_cast<uint64_t>(component.v_samp_factor);
}

uint64_t Units(JDIMENSION pixels, int samp_factor, bool alone) {
  const uint64_t unit =
      uint64_t{DCTSIZE} * (alone ? 1 : static_cast<uint64_t>(samp_factor));
  return (pixels + unit - 1) / unit;
}

}  // namespace

JpegScan JpegScan::Of(const jpeg_decompress_struct& cinfo) {
  JpegScan scan;
  scan.bytes = {reinterpret_cast<const std::byte*>(cinfo.src->next_input_byte),
                cinfo.src->bytes_in_buffer};
  scan.restart_interval = cinfo.restart_interval;
  const bool alone = cinfo.num_components == 1;
  int most_h = 1, most_v = 1;
  for (int i = 0; i < cinfo.num_components; ++i) {
    const jpeg_component_info& component = cinfo.comp_info[i];
    most_h = std::max(most_h, component.h_samp_factor);
    most_v = std::max(most_v, component.v_samp_factor);
    scan.least_bits +=
        Blocks(component, alone) *
        (LeastOfFirst(TableOf(cinfo.dc_huff_tbl_ptrs, component.dc_tbl_no)) +
         LeastOfOthers(TableOf(cinfo.ac_huff_tbl_ptrs, component.ac_tbl_no)));
  }
  scan.mcus = Units(cinfo.image_width, most_h, alone) *
              Units(cinfo.image_height, most_v, alone);
  return scan;
}

bool JpegScan::EndsEarly() const {
  Walker walker(bytes);
  uint64_t left = mcus;
  for (unsigned interval = 0;; ++interval) {
    const uint64_t count =
        restart_interval == 0 ? left : std::min(left, restart_interval);
    const bool last = count == left;
    const uint64_t least = (count * least_bits + 7) / 8;
    const uint8_t marker =
        walker.Next(last ? least : std::numeric_limits<uint64_t>::max());
    if (walker.data() < least) return true;
    if (last) return false;
    if (marker != kFirstRestart + interval % 8) return true;
    left -= count;
  }
}

}  // namespace leat::worker
