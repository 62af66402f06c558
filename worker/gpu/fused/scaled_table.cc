// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/scaled_table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace leat::worker {
namespace {

// Rounding adds at most 1.
constexpr int32_t kMostWeight = std::numeric_limits<int16_t>::max() - 1;

}  // namespace

void ScaledTable::Build(const ResampleTable& table, int64_t origin,
                        const ScaledAxis& axis) {
  const int count = table.size();
  stride_ = table.max_taps();
  entries_.resize(static_cast<size_t>(count));
  sums_.assign(static_cast<size_t>(count) * stride_, 0);
  weights_.resize(sums_.size());
  int32_t most = 0;
  for (int i = 0; i < count; ++i) {
    const Entry& from = table.entry(i);
    const int16_t* const weights = table.weights(i);
    int32_t* const sums = sums_.data() + static_cast<size_t>(i) * stride_;
    const int64_t first = axis.At(origin + from.start);
    int64_t last = first;
    for (int t = 0; t < from.taps; ++t) {
      last = axis.At(origin + from.start + t);
      sums[last - first] += weights[t];
    }
    entries_[i] = {static_cast<int32_t>(first),
                   static_cast<int32_t>(last - first + 1)};
    for (int t = 0; t < entries_[i].taps; ++t)
      most = std::max(most, std::abs(sums[t]));
  }
  int lost_bits = 0;
  while ((most >> lost_bits) > kMostWeight) ++lost_bits;
  bits_ = table.bits() - lost_bits;
  max_taps_ = 0;
  first_input_ = std::numeric_limits<int>::max();
  end_input_ = 0;
  for (int i = 0; i < count; ++i) {
    Quantise(i, lost_bits);
    const Entry& entry = entries_[i];
    max_taps_ = std::max(max_taps_, entry.taps);
    first_input_ = std::min(first_input_, entry.start);
    end_input_ = std::max(end_input_, entry.start + entry.taps);
  }
}

void ScaledTable::Quantise(int i, int lost_bits) {
  const int32_t* const sums = sums_.data() + static_cast<size_t>(i) * stride_;
  int16_t* const weights = weights_.data() + static_cast<size_t>(i) * stride_;
  const int32_t half = lost_bits == 0 ? 0 : 1 << (lost_bits - 1);
  int32_t running = 0, before = 0;
  for (int t = 0; t < entries_[i].taps; ++t) {
    running += sums[t];
    const int32_t now = (running + half) >> lost_bits;
    weights[t] = static_cast<int16_t>(now - before);
    before = now;
  }
}

}  // namespace leat::worker
