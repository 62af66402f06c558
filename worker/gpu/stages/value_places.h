// SPDX-License-Identifier: Apache-2.0
//
// ValuePlaces: the places of a row's values in a slot's memory between the
// launches that write and read them. Values that are not needed at the same
// time share memory.
//
//   a = places.Add(bytes), written by launch 0, read by launch 1
//   b = places.Add(bytes), written by launch 1, read by launch 2
//   c = places.Add(bytes), written by launch 2       takes the place of a
//
// Launches are numbered in their order. A launch's result never overlaps one of
// its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::worker {

inline constexpr uint64_t kValueAlignment = 256;

// Thread-compatible. Immutable after Place.
class ValuePlaces {
 public:
  // Adds a value of `bytes`, above 0; returns its index.
  uint32_t Add(uint64_t bytes);
  // Says that launch `launch` writes or reads the value. Launches before the
  // first such launch, or after the last, do not use it.
  void Use(uint32_t value, uint32_t launch);
  // Gives every value its place.
  void Place();

  size_t size() const { return values_.size(); }
  // Returns the offset in the row's memory; aligned. REQUIRES: Place was
  // called.
  uint64_t at(uint32_t value) const { return values_[value].at; }
  uint64_t bytes(uint32_t value) const { return values_[value].bytes; }
  // Returns the aligned bytes of a row.
  uint64_t row_bytes() const { return row_bytes_; }
  // True if both are needed at the same time.
  bool Meet(uint32_t a, uint32_t b) const;

 private:
  struct Value {
    uint64_t bytes = 0;  // aligned
    uint32_t first = ~uint32_t{0}, last = 0;
    uint64_t at = 0;
  };

  // Returns the lowest place that overlaps no value needed at the same time.
  uint64_t Lowest(uint32_t value, const std::vector<uint32_t>& placed) const;

  std::vector<Value> values_;
  uint64_t row_bytes_ = 0;
};

}  // namespace leat::worker
