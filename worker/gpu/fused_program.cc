// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused_program.h"

#include <algorithm>
#include <utility>

#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/fused_layout.h"

namespace leat::worker {

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
  return TablesAt(&header) + rows * MostTableBytes();
}

uint64_t FusedProgram::MostTableBytes() const {
  for (const Chain& chain : chains_)
    for (const ImageOp& op : chain.ops)
      if (op.Resamples()) return Aligned(limits_.max_table_bytes);
  return 0;
}

uint64_t FusedProgram::TableBytesBound(int64_t max_side) const {
  uint64_t sum = 0;
  for (const FusedImage& view : views_) {
    if (view.stage) {  // of any size
      sum += MostTableBytes();
      continue;
    }
    // What is kept of the resized image is no larger than it: no view shrinks
    // by more than from the largest side to its own; twice that, if its region
    // is stretched for a side that is rounded up from a half.
    const auto taps = [&](const ImageOp& op, int64_t size) {
      ResampleAxis axis = ResampleAxis::Whole(
          static_cast<int>(max_side), static_cast<int>(size), op.filters.shrink,
          op.filters.antialias);
      if (op.resize.subpixel_scale) axis.end *= 2;
      const int shrunk = ResampleTable::MostTaps(axis);
      axis.filter = op.filters.other;
      axis.end = axis.out;
      return std::max(shrunk, ResampleTable::MostTaps(axis));
    };
    uint64_t most = 0;
    for (size_t chain = view.chain;; chain = chains_[chain].parent) {
      for (const ImageOp& op : chains_[chain].ops)
        if (op.Resamples())
          most = std::max(
              most, TableBytes(view.size.width, taps(op, view.size.width),
                               view.size.height, taps(op, view.size.height)));
      if (chain == 0) break;
    }
    sum += most;
  }
  return sum;
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

}  // namespace leat::worker
