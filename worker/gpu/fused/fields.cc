// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/fields.h"

#include "worker/gpu/layout/fused_layout.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxPixelTables = size_t{1} << 20;

}  // namespace

bool FusedFields::AddTail(uint32_t output, uint32_t view, FusedTail tail) {
  tail.field.output = output;
  tail.field.at = static_cast<uint32_t>(tables_.size());
  tables_.insert(tables_.end(), tail.table.begin(), tail.table.end());
  tables_.resize(Aligned(tables_.size()));
  fields_.push_back({view, tail.field});
  return tables_.size() <= kMaxPixelTables;
}

void FusedFields::AddHost(uint32_t output, uint32_t bytes) {
  fields_.push_back({0,
                     {.kind = FusedKind::kHost,
                      .output = output,
                      .element_bytes = bytes,
                      .at = host_stride_}});
  host_stride_ += sizeof(uint64_t);
}

void FusedFields::AddStage(uint32_t output) {
  fields_.push_back({0, {.kind = FusedKind::kStage, .output = output}});
}

}  // namespace leat::worker
