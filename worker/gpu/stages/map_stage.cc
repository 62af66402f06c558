// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/map_stage.h"

#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

// Axes that are one run in all operands become one: an element's place takes a
// division an axis.
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

}  // namespace

std::vector<int64_t> DenseSteps(const Shape& shape) {
  std::vector<int64_t> steps(shape.size());
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis])
    steps[axis] = step;
  return steps;
}

MapStage::MapStage(StageTensor out, std::vector<StageTensor> operands,
                   const MapRow& map, Adjust adjust, size_t extra_bytes)
    : Stage(StageKind::kMap, out, static_cast<uint32_t>(out.elements())),
      operands_(std::move(operands)),
      map_(map),
      adjust_(std::move(adjust)),
      extra_bytes_(extra_bytes) {
  map_.rank = static_cast<uint32_t>(out.shape.size());
  for (uint32_t axis = 0; axis < map_.rank; ++axis)
    map_.dims[axis] = static_cast<uint32_t>(out.shape[axis]);
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Shape& shape = operands_[k].shape;
    map_.in[k].dtype = operands_[k].dtype;
    if (shape.size() > map_.rank) continue;  // whose steps will be set
    const size_t missing = map_.rank - shape.size();
    const std::vector<int64_t> steps = DenseSteps(shape);
    for (size_t axis = 0; axis < shape.size(); ++axis)
      map_.in[k].steps[missing + axis] =
          shape[axis] == 1 ? 0 : static_cast<int32_t>(steps[axis]);
  }
}

void MapStage::SetSteps(size_t operand, const std::vector<int64_t>& steps) {
  for (size_t axis = 0; axis < steps.size(); ++axis)
    map_.in[operand].steps[axis] = static_cast<int32_t>(steps[axis]);
}

std::vector<const StageTensor*> MapStage::operands() const {
  std::vector<const StageTensor*> all;
  for (const StageTensor& operand : operands_) all.push_back(&operand);
  return all;
}

absl::Status MapStage::Bind(const StageRow& row,
                            const StageMemory& memory) const {
  MapRow map = map_;
  map.head = {.threads = threads(), .dtype = out().dtype};
  for (size_t k = 0; k < operands_.size(); ++k)
    map.in[k].at = row.AddressOf(operands_[k]);
  if (adjust_) RETURN_IF_ERROR(adjust_(row, memory, &map));
  // Boxes count the result's own axes.
  if (map.op != MapOp::kInBoxes) Collapse(&map);
  memcpy(memory.descriptor, &map, sizeof map);
  return absl::OkStatus();
}

}  // namespace leat::worker
