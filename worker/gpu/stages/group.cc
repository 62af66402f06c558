// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/group.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "worker/gpu/layout/fused_descriptor.h"

namespace leat::worker {
namespace {

class BoundRow final : public StageRow {
 public:
  BoundRow(const StageGroup& group, size_t row, const RowInput& input,
           const std::vector<Tensor>& values)
      : group_(group), row_(row), input_(input), values_(values) {}

  uint64_t AddressOf(const StageTensor& tensor) const override {
    return group_.AddressOf(row_, tensor);
  }
  uint64_t FaultAddress() const override { return group_.FaultAddressOf(row_); }
  const std::vector<Tensor>& values() const override { return values_; }
  const RowInput& input() const override { return input_; }

 private:
  const StageGroup& group_;
  const size_t row_;
  const RowInput& input_;
  const std::vector<Tensor>& values_;
};

}  // namespace

void StageGroup::Begin(const StageProgram& program, size_t rows, size_t fields,
                       std::span<std::byte> block, uint64_t constants_at,
                       uint64_t at, const StageDevice& device) {
  program_ = &program;
  block_ = block;
  rows_ = rows;
  fields_ = fields;
  constants_at_ = constants_at;
  at_ = at;
  device_ = device;
  outputs_.assign(rows * fields, 0);
  for (size_t row = 0; row < rows; ++row) SkipRow(row);
}

uint64_t StageGroup::AddressOf(size_t row, const StageTensor& tensor) const {
  switch (tensor.in) {
    case StageTensor::In::kValues:
      return device_.values.number() + row * program_->places().row_bytes() +
             program_->places().at(tensor.index);
    case StageTensor::In::kHost:
      return device_.block.number() + at_ + program_->HostAt(rows_, row) +
             program_->host_values()[tensor.index].at;
    case StageTensor::In::kConstants:
      return device_.block.number() + constants_at_ + tensor.index;
    case StageTensor::In::kField:
      return outputs_[row * fields_ + tensor.index];
  }
  return 0;
}

uint64_t StageGroup::FaultAddressOf(size_t row) const {
  return device_.values.number() + program_->FaultsAt(rows_) +
         row * sizeof(uint32_t);
}

StageHead* StageGroup::HeadOf(size_t stage, size_t row) const {
  return reinterpret_cast<StageHead*>(
      block_.data() + at_ + program_->DescriptorAt(stage, rows_, row));
}

absl::Status StageGroup::PrepareRow(size_t row, Whose whose,
                                    const RowInput& input,
                                    std::vector<Tensor>* values) {
  for (const SizedStep& step : program_->sized_steps())
    if (step.whose == whose)
      RETURN_IF_ERROR(SetSizes(step, input, program_->most_elements(), values));
  for (const StageHostValue& host : program_->host_values())
    if (host.whose == whose)
      memcpy(block_.data() + at_ + program_->HostAt(rows_, row) + host.at,
             (*values)[host.value].data, host.bytes);
  const BoundRow bound(*this, row, input, *values);
  for (size_t i = 0; i < program_->stages().size(); ++i) {
    const Stage& stage = *program_->stages()[i];
    if (stage.whose() != whose) continue;
    const uint64_t extra = at_ + program_->ExtraAt(i, rows_, row);
    RETURN_IF_ERROR(stage.Bind(
        bound, {.descriptor = reinterpret_cast<std::byte*>(HeadOf(i, row)),
                .extra = block_.data() + extra,
                .extra_at = device_.block.number() + extra}));
  }
  return absl::OkStatus();
}

void StageGroup::BindSource(size_t row, size_t stage, ImageSize size,
                            const FusedRow& source) {
  const auto width = static_cast<uint32_t>(size.width);
  const auto height = static_cast<uint32_t>(size.height);
  const StageTensor& out = program_->stages()[stage]->out();
  const ResampleRow descriptor{
      .head = {.threads = FusedStrips(width, height), .dtype = out.dtype},
      .view = {.width = width, .height = height},
      .from = source,
      .tables = device_.block.number(),
      .channels = static_cast<uint32_t>(out.shape[2])};
  *reinterpret_cast<ResampleRow*>(HeadOf(stage, row)) = descriptor;
}

void StageGroup::BindOutput(size_t row, size_t field, DeviceAddress address) {
  outputs_[row * fields_ + field] = address.number();
}

void StageGroup::TakeRow(size_t row) {
  for (size_t i = 0; i < program_->stages().size(); ++i)
    HeadOf(i, row)->out = AddressOf(row, program_->stages()[i]->out());
}

void StageGroup::SkipRow(size_t row) {
  for (size_t i = 0; i < program_->stages().size(); ++i)
    HeadOf(i, row)->out = 0;
}

}  // namespace leat::worker
