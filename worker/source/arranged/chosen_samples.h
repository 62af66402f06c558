// SPDX-License-Identifier: Apache-2.0
//
// ChosenSamples: the payload of a block of an arrangement that chooses samples:
// the base's sample of each item, as the difference from that of the item
// before it. A difference is a zigzag varint, so that a subset in the base's
// order takes one byte a sample, or two.
//
//   samples 5, 6, 9, 2      differences 5, 1, 3, -7      bytes 0a 02 06 0d
//
// An opened block keeps the bytes as they are, and the place of every 64th
// item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::worker {

class ChosenSamples {
 public:
  // Adds a sample to `bytes`, behind one of number `before`. The first of a
  // block is behind 0.
  static void Append(uint64_t sample, uint64_t before, std::string* bytes);

  // kDataLoss: other than `items` items, or one that is not a sample of a base
  // of `base_samples`.
  static absl::StatusOr<ChosenSamples> Parse(std::string bytes, uint64_t items,
                                             uint64_t base_samples);

  uint64_t size() const { return items_; }
  // Returns the base's sample. Decodes at most 64 of them. REQUIRES: item <
  // size().
  uint64_t At(uint64_t item) const;

 private:
  static constexpr uint64_t kStride = 64;
  struct Mark {
    uint64_t sample = 0;  // of the item before
    size_t at = 0;        // in bytes_
  };

  std::string bytes_;
  uint64_t items_ = 0;
  std::vector<Mark> marks_;  // one for every kStride items
};

}  // namespace leat::worker
