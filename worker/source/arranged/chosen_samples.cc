// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/chosen_samples.h"

#include <string_view>
#include <utility>

#include "core/status.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

uint64_t ToZigzag(int64_t number) {
  return (static_cast<uint64_t>(number) << 1) ^
         static_cast<uint64_t>(number >> 63);
}
uint64_t FromZigzag(uint64_t zigzag) { return (zigzag >> 1) ^ -(zigzag & 1); }

}  // namespace

void ChosenSamples::Append(uint64_t sample, uint64_t before,
                           std::string* bytes) {
  AppendVarint(ToZigzag(static_cast<int64_t>(sample - before)), bytes);
}

absl::StatusOr<ChosenSamples> ChosenSamples::Parse(std::string bytes,
                                                   uint64_t items,
                                                   uint64_t base_samples) {
  ChosenSamples chosen;
  chosen.bytes_ = std::move(bytes);
  chosen.items_ = items;
  if (items > chosen.bytes_.size())
    return DataLoss("the index claims {} samples in {} bytes", items,
                    chosen.bytes_.size());
  std::string_view rest = chosen.bytes_;
  uint64_t sample = 0, zigzag = 0;
  for (uint64_t i = 0; i < items; ++i) {
    if (i % kStride == 0)
      chosen.marks_.push_back({sample, chosen.bytes_.size() - rest.size()});
    if (!TakeVarint(&rest, &zigzag))
      return DataLoss("the index ends at sample {} of {}", i, items);
    // Wraps where the difference is malformed.
    sample += FromZigzag(zigzag);
    if (sample >= base_samples)
      return DataLoss("the index has sample {} of a dataset of {}", sample,
                      base_samples);
  }
  if (!rest.empty())
    return DataLoss("the index has {} bytes behind {} samples", rest.size(),
                    items);
  return chosen;
}

uint64_t ChosenSamples::At(uint64_t item) const {
  const Mark& mark = marks_[item / kStride];
  std::string_view rest = std::string_view(bytes_).substr(mark.at);
  uint64_t sample = mark.sample, zigzag = 0;
  for (uint64_t i = item - item % kStride; i <= item; ++i) {
    TakeVarint(&rest, &zigzag);
    sample += FromZigzag(zigzag);
  }
  return sample;
}

}  // namespace leat::worker
