// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/program.h"

#include <algorithm>
#include <utility>

#include "worker/gpu/kernels/stages.h"
#include "worker/gpu/layout/fused_layout.h"

namespace leat::worker {

namespace {

// Bounds on a value whose size differs from row to row: less is useless, and
// more takes more threads than a launch has.
constexpr uint64_t kLeastElements = 1024;
constexpr uint64_t kMostElements = uint64_t{1} << 28;

}  // namespace

// Launch 0 is the fused kernel, stage i is launch i + 1.
ValuePlaces StageProgram::PlacesWith(
    uint64_t elements, const std::vector<PlaceBytes>& values,
    const std::vector<StageTensor>& heads) const {
  ValuePlaces places;
  for (const PlaceBytes& bytes : values)
    places.Add(bytes.all + bytes.each * elements);
  const auto use = [&](const StageTensor& tensor, uint32_t launch) {
    if (tensor.in == StageTensor::In::kValues) places.Use(tensor.index, launch);
  };
  for (const StageTensor& head : heads) use(head, 0);
  for (size_t i = 0; i < stages_.size(); ++i) {
    const auto launch = static_cast<uint32_t>(i + 1);
    use(stages_[i]->out(), launch);
    for (const StageTensor* operand : stages_[i]->operands())
      use(*operand, launch);
  }
  places.Place();
  return places;
}

StageProgram::StageProgram(StageBuilder builder,
                           const std::vector<StageTensor>& heads,
                           std::vector<StageHostValue> host,
                           uint64_t value_bytes)
    : stages_(std::move(builder.stages())),
      sized_steps_(std::move(builder.sized_steps())),
      constants_(builder.constants()),
      host_(std::move(host)),
      may_fail_(builder.may_fail()) {
  const std::vector<PlaceBytes>& values = builder.value_bytes();
  const bool by_row = std::ranges::any_of(
      values, [](const PlaceBytes& bytes) { return bytes.each > 0; });
  // The row's fault word is part of its share.
  if (may_fail_) value_bytes -= std::min(value_bytes, kValueAlignment);
  if (by_row) most_elements_ = std::min(value_bytes, kMostElements);
  // Values needed at the same time share the row's bytes: their number of
  // elements falls by sixteenths until they fit.
  for (;; most_elements_ -= (most_elements_ + 15) / 16) {
    if (by_row && most_elements_ < kLeastElements) most_elements_ = 0;
    places_ = PlacesWith(most_elements_, values, heads);
    if (most_elements_ == 0 || places_.row_bytes() <= value_bytes) break;
  }
  size_t descriptors = 0, extras = 0;
  for (const auto& owned : stages_) {
    const Stage& stage = *owned;
    descriptors_.push_back(descriptors);
    extras_.push_back(extras);
    descriptors += Aligned(stage.descriptor_bytes());
    extras += Aligned(stage.extra_bytes());
  }
  descriptors_.push_back(descriptors);
  extras_.push_back(extras);
  for (const StageHostValue& value : host_)
    host_bytes_ = std::max(host_bytes_, Aligned(value.at + value.bytes));
}

uint64_t StageProgram::BlockBytes(size_t rows) const {
  return HostAt(rows, rows);
}

uint64_t StageProgram::DescriptorAt(size_t stage, size_t rows,
                                    size_t row) const {
  // Descriptors of a launch are one array, whose stride is the descriptor's
  // size.
  return rows * descriptors_[stage] + row * stages_[stage]->descriptor_bytes();
}

uint64_t StageProgram::ExtraAt(size_t stage, size_t rows, size_t row) const {
  return rows * descriptors_.back() + row * extras_.back() + extras_[stage];
}

uint64_t StageProgram::HostAt(size_t rows, size_t row) const {
  return rows * (descriptors_.back() + extras_.back()) + row * host_bytes_;
}

StageLaunch StageProgram::Launch(size_t stage, size_t rows, uint64_t at) const {
  uint32_t threads = stages_[stage]->threads();
  if (threads == 0) threads = static_cast<uint32_t>(most_elements_);
  return {.kind = stages_[stage]->kind(),
          .config = StageLaunchConfig(threads, static_cast<uint32_t>(rows)),
          .rows_at = at + DescriptorAt(stage, rows, 0)};
}

}  // namespace leat::worker
