// SPDX-License-Identifier: Apache-2.0
//
// Places the largest values first, each at the lowest place that is free for as
// long as it is needed: never more than the sum of all, and usually close to
// the most that is needed at once.
#include "worker/gpu/stages/value_places.h"

#include <algorithm>
#include <numeric>

namespace leat::worker {

uint32_t ValuePlaces::Add(uint64_t bytes) {
  values_.push_back({.bytes = (bytes + kValueAlignment - 1) / kValueAlignment *
                              kValueAlignment});
  return static_cast<uint32_t>(values_.size() - 1);
}

void ValuePlaces::Use(uint32_t value, uint32_t launch) {
  Value& v = values_[value];
  v.first = std::min(v.first, launch);
  v.last = std::max(v.last, launch);
}

bool ValuePlaces::Meet(uint32_t a, uint32_t b) const {
  return values_[a].first <= values_[b].last &&
         values_[b].first <= values_[a].last;
}

uint64_t ValuePlaces::Lowest(uint32_t value,
                             const std::vector<uint32_t>& placed) const {
  std::vector<uint32_t> others;
  for (const uint32_t other : placed)
    if (Meet(value, other)) others.push_back(other);
  std::ranges::sort(others, {}, [&](uint32_t v) { return values_[v].at; });
  uint64_t at = 0;
  for (const uint32_t other : others) {
    if (at + values_[value].bytes <= values_[other].at) break;
    at = std::max(at, values_[other].at + values_[other].bytes);
  }
  return at;
}

void ValuePlaces::Place() {
  std::vector<uint32_t> order(values_.size()), placed;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](uint32_t v) { return values_[v].bytes; });
  row_bytes_ = 0;
  for (const uint32_t value : order) {
    values_[value].at = Lowest(value, placed);
    row_bytes_ = std::max(row_bytes_, values_[value].at + values_[value].bytes);
    placed.push_back(value);
  }
}

}  // namespace leat::worker
