// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/program.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/status.h"
#include "worker/gpu/device/queue.h"
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/names.h"
#include "worker/gpu/layout/fused_layout.h"

namespace leat::worker {

void FusedProgram::LayOut(std::vector<ViewField> fields,
                          const std::vector<std::byte>& tables) {
  std::sort(fields.begin(), fields.end(),
            [](const ViewField& a, const ViewField& b) {
              return std::tie(a.view, a.field.output) <
                     std::tie(b.view, b.field.output);
            });
  std::vector<FusedView> views;
  for (const FusedImage& image : views_) {
    // A view that a stage makes is represented by one pixel.
    const ImageSize size = image.stage ? ImageSize{1, 1} : image.size;
    views.push_back({.width = static_cast<uint32_t>(size.width),
                     .height = static_cast<uint32_t>(size.height)});
    strips_ =
        std::max(strips_, FusedStrips(views.back().width, views.back().height));
  }
  header_.views = static_cast<uint32_t>(views.size());
  header_.fields = static_cast<uint32_t>(fields.size());
  header_.host_stride = host_stride_;
  const size_t view_bytes = views.size() * sizeof(FusedView);
  const size_t field_bytes = fields.size() * sizeof(FusedField);
  const size_t views_at = Aligned(sizeof(FusedHeader));
  const size_t fields_at = Aligned(views_at + view_bytes);
  const size_t tables_at = Aligned(fields_at + field_bytes);
  header_.views_at = static_cast<uint32_t>(views_at);
  header_.fields_at = static_cast<uint32_t>(fields_at);
  field_of_output_.resize(fields.size());
  for (uint32_t f = 0; f < fields.size(); ++f) {
    auto& [view, field] = fields[f];
    if (views[view].end_field == 0) views[view].first_field = f;
    views[view].end_field = f + 1;
    if (field.kind == FusedKind::kTable)
      field.at += static_cast<uint32_t>(tables_at);
    field_of_output_[field.output] = f;
    fields_.push_back(field);
  }
  const std::vector<std::byte>& constants = stages_->constants();
  constants_at_ = Aligned(tables_at + tables.size());
  prefix_.resize(Aligned(constants_at_ + constants.size()));
  std::ranges::copy(constants,
                    prefix_.begin() + static_cast<ptrdiff_t>(constants_at_));
  memcpy(prefix_.data() + views_at, views.data(), view_bytes);
  memcpy(prefix_.data() + fields_at, fields_.data(), field_bytes);
  std::ranges::copy(tables,
                    prefix_.begin() + static_cast<ptrdiff_t>(tables_at));
}

uint64_t FusedProgram::StagesAt(FusedHeader* header) const {
  const uint64_t rows = header->rows;
  const uint64_t rows_at = prefix_.size();
  const uint64_t outputs_at =
      Aligned(rows_at + rows * views_.size() * sizeof(FusedRow));
  const uint64_t host_values_at =
      Aligned(outputs_at + rows * fields_.size() * sizeof(uint64_t));
  header->rows_at = static_cast<uint32_t>(rows_at);
  header->outputs_at = static_cast<uint32_t>(outputs_at);
  header->host_values_at = static_cast<uint32_t>(host_values_at);
  return Aligned(host_values_at + rows * host_stride_);
}

uint64_t FusedProgram::TablesAt(FusedHeader* header) const {
  const uint64_t rows = header->rows;
  return Aligned(StagesAt(header) + stages_->BlockBytes(rows));
}

StageLaunch FusedProgram::stage(size_t stage, size_t rows) const {
  FusedHeader header = header_;
  header.rows = static_cast<uint32_t>(rows);
  return stages_->Launch(stage, rows, StagesAt(&header));
}

uint64_t FusedProgram::BlockBytes(size_t rows) const {
  FusedHeader header = header_;
  header.rows = static_cast<uint32_t>(rows);
  const uint64_t images =
      uint64_t{decodes(Whose::kRow)} + uint64_t{decodes(Whose::kPartner)};
  return TablesAt(&header) + rows * images * MostTableBytes();
}

uint64_t FusedProgram::MostTableBytes() const {
  for (const FusedChain& chain : chains_)
    for (const ImageOp& op : chain.ops)
      if (op.Resamples()) return Aligned(limits_.max_table_bytes);
  return 0;
}

size_t FusedProgram::kernel_index() const {
  return (dali_ ? 2 : 0) + (channels() == 1 ? 0 : 1);
}

const char* FusedProgram::kernel() const {
  return kFusedKernels[kernel_index()];
}

LaunchConfig FusedProgram::launch(size_t rows) const {
  return FusedLaunch(strips_, static_cast<uint32_t>(rows * views_.size()));
}

absl::Status FusedProgram::Launch(size_t rows, DeviceAddress block,
                                  DeviceQueue* queue) const {
  RETURN_IF_ERROR(
      queue->Launch(FusedKernelId(kernel_index()), launch(rows), block));
  for (size_t i = 0; i < stages(); ++i) {
    const StageLaunch stage = this->stage(i, rows);
    RETURN_IF_ERROR(queue->Launch(StageKernelId(stage.kind), stage.config,
                                  block + stage.rows_at));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
