// SPDX-License-Identifier: Apache-2.0
//
// OpenRows finds, among rows that are not full, the one with the least room
// that is enough.
//
// Rows with equal room are a list: the row that was put last is taken
// first. A tree of bits, 64 children a node, tells which rooms have rows; so a
// search looks at most at two words of each of its four levels.
//
// Not thread-safe. Memory: 4 bytes for each room and 4 for each row.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace leat {

class OpenRows {
 public:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  // Rooms are 1 to `length`.
  explicit OpenRows(uint64_t length) : last_(length + 1, kNoRow) {
    for (uint64_t bits = length + 1; levels_.empty() || bits > 1;) {
      bits = (bits + 63) / 64;
      levels_.emplace_back(bits, 0);
    }
  }

  // Returns the least room of a row that is at least `size`, or kNone.
  // REQUIRES: size <= length.
  uint64_t LeastRoom(uint64_t size) const {
    uint64_t at = size;  // bit of the level
    for (size_t level = 0; level < levels_.size(); ++level) {
      const uint64_t word = at / 64;
      if (word >= levels_[level].size()) return kNone;
      const uint64_t found = levels_[level][word] & (~uint64_t{0} << at % 64);
      if (found != 0) {
        at = word * 64 + static_cast<uint64_t>(std::countr_zero(found));
        while (level-- > 0) {
          at = at * 64 +
               static_cast<uint64_t>(std::countr_zero(levels_[level][at]));
        }
        return at;
      }
      at = word + 1;
    }
    return kNone;
  }

  // Removes the row with this room that was put last, and returns it.
  // REQUIRES: LeastRoom returned `room`.
  uint32_t Take(uint64_t room) {
    const uint32_t row = last_[room];
    last_[room] = before_[row];
    if (last_[room] != kNoRow) return row;
    for (std::vector<uint64_t>& level : levels_) {
      level[room / 64] &= ~(uint64_t{1} << room % 64);
      if (level[room / 64] != 0) break;
      room /= 64;
    }
    return row;
  }

  // REQUIRES: the row is not in; 0 < room <= length.
  void Put(uint32_t row, uint64_t room) {
    if (row >= before_.size()) before_.resize(row + 1, kNoRow);
    before_[row] = last_[room];
    last_[room] = row;
    for (std::vector<uint64_t>& level : levels_) {
      level[room / 64] |= uint64_t{1} << room % 64;
      room /= 64;
    }
  }

 private:
  static constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();

  std::vector<uint32_t> last_;    // of each room: the row put last
  std::vector<uint32_t> before_;  // of each row: the row of that room before it
  std::vector<std::vector<uint64_t>> levels_;  // bits; the lowest level first
};

}  // namespace leat
