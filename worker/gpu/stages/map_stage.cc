// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/map_stage.h"

#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

// Merges axes that are one run in all operands: finding an element's place
// takes one division per axis.
void Collapse(MapRow* map) {
  uint32_t kept = 0;
  for (uint32_t axis = 0; axis < map->rank; ++axis) {
    if (map->dims[axis] == 1) continue;
    bool one_run = kept > 0;
    for (const StageOperand& in : map->in)
      one_run =
          one_run && in.steps[kept - 1] ==
                         in.steps[axis] * static_cast<int64_t>(map->dims[axis]);
    if (one_run) {
      map->dims[kept - 1] *= map->dims[axis];
      for (StageOperand& in : map->in) in.steps[kept - 1] = in.steps[axis];
      continue;
    }
    map->dims[kept] = map->dims[axis];
    for (StageOperand& in : map->in) in.steps[kept] = in.steps[axis];
    ++kept;
  }
  map->rank = kept;
}

// Sets the operand's steps along the result's axes.
void Broadcast(Sizes sizes, size_t rank, StageOperand* operand) {
  if (sizes.size() > rank) return;  // its steps will be set
  const std::array<int64_t, kStageAxes> steps = DenseSteps(sizes);
  const size_t missing = rank - sizes.size();
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    operand->steps[missing + axis] =
        sizes[axis] == 1 ? 0 : static_cast<int32_t>(steps[axis]);
}

}  // namespace

std::array<int64_t, kStageAxes> DenseSteps(Sizes sizes) {
  std::array<int64_t, kStageAxes> steps{};
  int64_t step = 1;
  for (size_t axis = sizes.size(); axis-- > 0; step *= sizes[axis])
    steps[axis] = step;
  return steps;
}

MapStage::MapStage(const StageTensor& out, std::vector<StageTensor> operands,
                   const MapRow& map, Adjust adjust, size_t extra_bytes)
    : Stage(StageKind::kMap, out, ThreadsFor(out)),
      operands_(std::move(operands)),
      map_(map),
      adjust_(std::move(adjust)),
      extra_bytes_(extra_bytes) {}

std::vector<const StageTensor*> MapStage::operands() const {
  std::vector<const StageTensor*> all;
  for (const StageTensor& operand : operands_) all.push_back(&operand);
  return all;
}

absl::Status MapStage::Bind(const StageRow& row,
                            const StageMemory& memory) const {
  MapRow map = map_;
  const Sizes sizes = row.SizesOf(out());
  map.head = HeadOf(ElementsOf(sizes));
  map.head.dtype = out().dtype;
  map.rank = static_cast<uint32_t>(sizes.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    map.dims[axis] = static_cast<uint32_t>(sizes[axis]);
  for (size_t k = 0; k < operands_.size(); ++k) {
    map.in[k].at = row.AddressOf(operands_[k]);
    map.in[k].dtype = operands_[k].dtype;
    Broadcast(row.SizesOf(operands_[k]), sizes.size(), &map.in[k]);
  }
  if (adjust_) RETURN_IF_ERROR(adjust_(row, memory, &map));
  // Boxes refer to the result's own axes.
  if (map.op != MapOp::kInBoxes) Collapse(&map);
  memcpy(memory.descriptor, &map, sizeof map);
  return absl::OkStatus();
}

}  // namespace leat::worker
