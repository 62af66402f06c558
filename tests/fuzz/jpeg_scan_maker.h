// SPDX-License-Identifier: Apache-2.0
//
// JpegScanMaker: gives a JPEG file another size and other codes, drawn from its
// own Huffman tables, so that the file stays sound; and damages a file's codes
// without its header.
//
// A drawn block has as many coefficients, and as large ones, as the file's draw
// says: some files have hardly any, and some have blocks that are not exact.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"

namespace leat::worker {

class JpegScanMaker {
 public:
  JpegScanMaker(JpegScanMaker&&) = default;

  // Returns the maker for a file; nullopt: it is not sequential, or not
  // Huffman coded, or its header is damaged.
  static std::optional<JpegScanMaker> Of(std::string_view jpeg) {
    JpegScanMaker maker(jpeg);
    if (!maker.Parse()) return std::nullopt;
    return maker;
  }

  struct Kind {
    bool restarts = false;  // some have restart markers
    // True if most files have few MCUs. Threads that search for their places
    // need more: a segment has 16 MCUs.
    bool small = false;
  };

  // Returns a file with drawn codes.
  std::string Make(fuzz::Random& random, const Kind& kind) {
    state_ = random();
    DrawSize(kind.small);
    interval_ =
        kind.restarts && Below(3) == 0 ? 1 + Below(Below(2) == 0 ? 4 : 60) : 0;
    most_dc_ = 1 + static_cast<int32_t>(Below(Below(16) == 0 ? 1000 : 60));
    most_size_ = 1 + Below(Below(16) == 0 ? 10 : 3);
    ends_of_ = 2 + Below(Below(4) == 0 ? 60 : 8);
    std::string file;
    file.reserve(8192);
    file += jpeg_.substr(0, frame_);
    for (const size_t side : {height_, width_}) {
      file += static_cast<char>(side >> 8);
      file += static_cast<char>(side);
    }
    file += jpeg_.substr(frame_ + 4, scan_ - frame_ - 4);
    file += std::string("\xff\xdd\0\4\0", 5) + static_cast<char>(interval_);
    file += jpeg_.substr(scan_, data_ - scan_);
    out_ = &file;
    DrawScan();
    return file + "\xff\xd9";
  }

  // Changes some bytes behind the header of a file.
  static void Damage(std::string& file, fuzz::Random& random) {
    const auto maker = Of(file);
    const size_t begin = maker ? maker->data_ : 0;
    if (file.size() <= begin + 2) return;
    for (size_t left = 1 + random() % 3; left > 0; --left) {
      const size_t at = begin + random() % (file.size() - begin);
      const size_t count = 1 + random() % 12;
      switch (random() % 9) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 8:  // the file is cut off, or ends too early
          file.resize(std::max(at, begin + 2));
          if (random() % 4 != 0) file += "\xff\xd9";
          break;
        case 1:
          file.erase(at, std::min(count, file.size() - begin - 2));
          break;
        case 2:
          file.insert(at, file.substr(begin, count));
          break;
        case 3: {
          const std::string marker{'\xff',
                                   static_cast<char>(0xd0 + random() % 8)};
          file.insert(at, marker);
          break;
        }
        case 4:  // before a marker, a fill byte or one too many
          if (const size_t found = file.find('\xff', at);
              found != std::string::npos)
            file.insert(found, 1, random() % 2 == 0 ? '\xff' : '\x55');
          break;
        case 5:  // a marker that has another number, or is none
          if (const size_t found = file.find('\xff', at);
              found != std::string::npos && found + 1 < file.size())
            file[found + 1] ^= static_cast<char>(1 << random() % 8);
          break;
        default:
          file[at] ^= static_cast<char>(1 << random() % 8);
          break;
      }
    }
  }

 private:
  struct Code {
    uint32_t bits = 0;
    int length = 0;  // 0: the table has no such code
  };
  struct Table {
    std::array<Code, 256> codes{};
    std::vector<uint8_t> symbols;
  };
  struct Component {
    uint8_t id = 0, across = 1, down = 1;
    size_t dc = 0, ac = 0;  // indexes of tables_
  };

  explicit JpegScanMaker(std::string_view jpeg) : jpeg_(jpeg) {}

  size_t Byte(size_t at) const { return static_cast<uint8_t>(jpeg_[at]); }
  // REQUIRES: end < 2^32.
  size_t Below(size_t end) {
    // SplitMix64: a block takes many draws.
    uint64_t drawn = state_ += 0x9e3779b97f4a7c15;
    drawn = (drawn ^ drawn >> 30) * 0xbf58476d1ce4e5b9;
    drawn = (drawn ^ drawn >> 27) * 0x94d049bb133111eb;
    return (drawn >> 32) * end >> 32;
  }

  // Finds the frame's height, the scan's header and its data.
  bool Parse() {
    size_t at = 2;
    while (at + 4 <= jpeg_.size() && Byte(at) == 0xff) {
      const size_t marker = Byte(at + 1), begin = at + 4;
      const size_t end = at + 2 + (Byte(at + 2) << 8 | Byte(at + 3));
      if (end < begin || end > jpeg_.size()) return false;
      if ((marker == 0xc0 || marker == 0xc1) && !ReadFrame(begin, end))
        return false;
      if (marker == 0xc4 && !ReadTables(begin, end)) return false;
      if (marker == 0xda) {
        scan_ = at;
        data_ = end;
        return ReadScan(begin, end);
      }
      at = end;
    }
    return false;
  }
  bool ReadFrame(size_t begin, size_t end) {
    if (end - begin < 6 || Byte(begin) != 8) return false;
    frame_ = begin + 1;
    components_.resize(Byte(begin + 5));
    if (end - begin < 6 + 3 * components_.size()) return false;
    for (size_t i = 0; i < components_.size(); ++i) {
      const size_t from = begin + 6 + 3 * i;
      components_[i] = {.id = static_cast<uint8_t>(Byte(from)),
                        .across = static_cast<uint8_t>(Byte(from + 1) >> 4),
                        .down = static_cast<uint8_t>(Byte(from + 1) & 15)};
      if (components_[i].across == 0 || components_[i].down == 0) return false;
    }
    return true;
  }
  bool ReadTables(size_t begin, size_t end) {
    while (begin + 17 <= end) {
      const size_t which = Byte(begin);
      if ((which & 15) > 3 || which > 0x1f) return false;
      Table& table = tables_[2 * (which & 15) + (which >> 4)];
      table = {};
      uint32_t code = 0;
      size_t at = begin + 17;
      for (int length = 1; length <= 16; ++length, code <<= 1)
        for (size_t i = Byte(begin + static_cast<size_t>(length)); i > 0; --i) {
          if (at >= end) return false;
          const size_t symbol = Byte(at++);
          table.codes[symbol] = {code++, length};
          table.symbols.push_back(static_cast<uint8_t>(symbol));
        }
      begin = at;
    }
    return true;
  }
  bool ReadScan(size_t begin, size_t end) {
    if (components_.empty() || end - begin < 1 + 2 * components_.size() ||
        Byte(begin) != components_.size())
      return false;
    for (size_t i = 0; i < components_.size(); ++i) {
      Component& component = components_[i];
      const size_t numbers = Byte(begin + 2 + 2 * i);
      if (Byte(begin + 1 + 2 * i) != component.id || numbers > 0x33 ||
          (numbers & 15) > 3)
        return false;
      component.dc = 2 * (numbers >> 4);
      component.ac = 2 * (numbers & 15) + 1;
      // A block may be 0.
      if (tables_[component.dc].codes[0].length == 0 ||
          tables_[component.ac].codes[0].length == 0)
        return false;
    }
    return true;
  }

  // A few are wide, as a row of an index has an entry each 16 MCUs, and some
  // have several hundred MCUs.
  void DrawSize(bool small) {
    const size_t draw = Below(64);
    width_ = 1 + Below(draw < 9 ? 400 : small ? 56 : 90);
    height_ = 1 + Below(draw == 0 ? 200 : draw < 9 ? 20 : small ? 40 : 50);
  }
  void DrawScan() {
    size_t across = 1, down = 1;
    const bool alone = components_.size() == 1;
    for (const Component& each : components_) {
      across = std::max<size_t>(across, alone ? 1 : each.across);
      down = std::max<size_t>(down, alone ? 1 : each.down);
    }
    const size_t mcus = ((width_ + 8 * across - 1) / (8 * across)) *
                        ((height_ + 8 * down - 1) / (8 * down));
    std::array<int32_t, 256> predictors{};
    for (size_t mcu = 0; mcu < mcus; ++mcu) {
      if (interval_ > 0 && mcu > 0 && mcu % interval_ == 0) {
        Flush();
        *out_ += '\xff';
        *out_ += static_cast<char>(0xd0 + (mcu / interval_ - 1) % 8);
        predictors = {};
      }
      for (size_t i = 0; i < components_.size(); ++i) {
        const Component& of = components_[i];
        for (size_t n = alone ? 1 : size_t{of.across} * of.down; n > 0; --n)
          DrawBlock(of, &predictors[i]);
      }
    }
    Flush();
  }
  void DrawBlock(const Component& of, int32_t* predictor) {
    const Table &dc = tables_[of.dc], &ac = tables_[of.ac];
    const size_t size = dc.symbols[Below(dc.symbols.size())];
    int32_t value = size > 0 && size < 16 ? DrawValue(size) : 0;
    if (std::abs(*predictor + value) > most_dc_) value = 0;
    *predictor += value;
    PutValue(dc, 0, value);
    for (size_t at = 1; at < 64;) {
      const size_t symbol =
          Below(ends_of_) == 0 ? 0 : ac.symbols[Below(ac.symbols.size())];
      const size_t run = symbol >> 4, bits = symbol & 15;
      const bool zeros = symbol == 0xf0;
      if (bits > most_size_) continue;
      if (at + run >= 64 || (bits == 0 && !zeros)) return PutCode(ac, 0);
      if (zeros)
        PutCode(ac, symbol);
      else
        PutValue(ac, run, DrawValue(bits));
      at += run + 1;
    }
  }
  // Returns a value of so many bits, more than 0.
  int32_t DrawValue(size_t bits) {
    const int32_t least = 1 << (bits - 1);
    const auto value =
        least + static_cast<int32_t>(Below(static_cast<size_t>(least)));
    return Below(2) == 0 ? value : -value;
  }
  void PutValue(const Table& table, size_t run, int32_t value) {
    int size = 0;
    while (std::abs(value) >> size != 0) ++size;
    PutCode(table, run << 4 | static_cast<size_t>(size));
    if (value < 0) value += (1 << size) - 1;
    PutBits(static_cast<uint32_t>(value), size);
  }
  void PutCode(const Table& table, size_t symbol) {
    PutBits(table.codes[symbol].bits, table.codes[symbol].length);
  }
  // REQUIRES: count is at most 16.
  void PutBits(uint32_t bits, int count) {
    held_ = held_ << count | bits;
    held_bits_ += count;
    for (; held_bits_ >= 8; held_bits_ -= 8) {
      const auto byte = static_cast<char>(held_ >> (held_bits_ - 8));
      *out_ += byte;
      if (byte == '\xff') *out_ += '\0';
    }
  }
  void Flush() {
    if (held_bits_ > 0) PutBits(0xffu >> held_bits_, 8 - held_bits_);
  }

  const std::string_view jpeg_;
  size_t frame_ = 0, scan_ = 0, data_ = 0;  // offsets
  std::array<Table, 8> tables_;             // of DC and AC, by number
  std::vector<Component> components_;
  // The draw.
  uint64_t state_ = 0;
  size_t width_ = 0, height_ = 0, interval_ = 0, most_size_ = 0, ends_of_ = 0;
  int32_t most_dc_ = 0;
  std::string* out_ = nullptr;
  uint64_t held_ = 0;  // the last bits
  int held_bits_ = 0;  // how many of them are to be put
};

}  // namespace leat::worker
