// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/stage_program.h"

#include <utility>

#include "worker/gpu/fused_layout.h"
#include "worker/gpu/stages/stage_kernel.h"

namespace leat::worker {

// Launch 0 is the fused kernel's, stage i is launch i + 1.
StageProgram::StageProgram(StageBuilder builder,
                           const std::vector<StageTensor>& heads,
                           std::vector<StageHostValue> host)
    : stages_(std::move(builder.stages())),
      constants_(builder.constants()),
      host_(std::move(host)) {
  for (const uint64_t bytes : builder.value_bytes()) places_.Add(bytes);
  const auto use = [&](const StageTensor& tensor, uint32_t launch) {
    if (tensor.in == StageTensor::In::kValues)
      places_.Use(tensor.index, launch);
  };
  for (const StageTensor& head : heads) use(head, 0);
  size_t descriptors = 0, extras = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = *stages_[i];
    const auto launch = static_cast<uint32_t>(i + 1);
    use(stage.out(), launch);
    for (const StageTensor* operand : stage.operands()) use(*operand, launch);
    descriptors_.push_back(descriptors);
    extras_.push_back(extras);
    descriptors += Aligned(stage.descriptor_bytes());
    extras += Aligned(stage.extra_bytes());
  }
  descriptors_.push_back(descriptors);
  extras_.push_back(extras);
  for (const StageHostValue& value : host_)
    host_bytes_ = std::max(host_bytes_, Aligned(value.at + value.bytes));
  places_.Place();
}

uint64_t StageProgram::BlockBytes(size_t rows) const {
  return HostAt(rows, rows);
}

uint64_t StageProgram::DescriptorAt(size_t stage, size_t rows,
                                    size_t row) const {
  // Descriptors of a launch are one array, of the descriptor's own size.
  return rows * descriptors_[stage] + row * stages_[stage]->descriptor_bytes();
}

uint64_t StageProgram::ExtraAt(size_t stage, size_t rows, size_t row) const {
  return rows * descriptors_.back() + row * extras_.back() + extras_[stage];
}

uint64_t StageProgram::HostAt(size_t rows, size_t row) const {
  return rows * (descriptors_.back() + extras_.back()) + row * host_bytes_;
}

StageLaunch StageProgram::Launch(size_t stage, size_t rows, uint64_t at) const {
  return {.kind = stages_[stage]->kind(),
          .config = StageLaunchConfig(stages_[stage]->threads(),
                                      static_cast<uint32_t>(rows)),
          .rows_at = at + DescriptorAt(stage, rows, 0)};
}

}  // namespace leat::worker
