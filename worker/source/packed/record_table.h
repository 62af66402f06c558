// SPDX-License-Identifier: Apache-2.0
//
// RecordTable: the sizes of records that follow each other without gaps, 4.5
// bytes each. Thread-safe once filled.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::worker {

class RecordTable {
 public:
  void Add(uint32_t size) {
    if (sizes_.size() % kStride == 0) bases_.push_back(end_);
    sizes_.push_back(size);
    end_ += size;
  }
  uint64_t count() const { return sizes_.size(); }
  // Returns the sum of all sizes.
  uint64_t End() const { return end_; }
  uint32_t size(uint64_t i) const { return sizes_[i]; }
  // Returns the sum of the sizes before record `i`.
  uint64_t Begin(uint64_t i) const {
    uint64_t begin = bases_[i / kStride];
    for (uint64_t j = i / kStride * kStride; j < i; ++j) begin += sizes_[j];
    return begin;
  }
  void ShrinkToFit() {
    bases_.shrink_to_fit();
    sizes_.shrink_to_fit();
  }

 private:
  static constexpr uint64_t kStride = 16;
  std::vector<uint64_t> bases_;  // of every kStride-th record
  std::vector<uint32_t> sizes_;
  uint64_t end_ = 0;
};

}  // namespace leat::worker
