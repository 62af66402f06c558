// SPDX-License-Identifier: Apache-2.0
//
// pad, slice, erase and cutmix_paste: boxes of one tensor inside another.
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/pipeline/device_forms.h"
#include "core/status.h"
#include "worker/gpu/layout/fused_layout.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"

namespace leat::worker {
namespace {

StageBox BoxOf(const Box& box, size_t rank) {
  StageBox result{};
  for (size_t axis = 0; axis < rank; ++axis) {
    result.begin[axis] = static_cast<int32_t>(box.at[axis]);
    result.end[axis] = static_cast<int32_t>(box.at[axis] + box.extent[axis]);
  }
  return result;
}

// Returns the length of a list argument; 0: it has no such list.
size_t Numbers(const Node& node, const char* name) {
  const auto it = node.args.find(name);
  if (it == node.args.end()) return 0;
  const auto* list = std::get_if<std::vector<double>>(&it->second);
  return list == nullptr ? 0 : list->size();
}

// Boxes, then the pattern, in the stage's memory.
struct BoxRoom {
  size_t boxes = 1;
  size_t pattern_bytes = 0;
  size_t bytes() const { return pattern_at() + pattern_bytes; }
  size_t pattern_at() const { return Aligned(boxes * sizeof(StageBox)); }
};

absl::Status BindBoxes(const BoxForm& form, const BoxRoom& room, Sizes in_sizes,
                       const StageMemory& memory, MapRow* map) {
  const size_t element = SizeOf(map->in[0].dtype);
  if (form.boxes.size() > room.boxes ||
      form.pattern.size() > room.pattern_bytes)
    return ResourceExhausted("{} boxes and a pattern of {} bytes, room for {}",
                             form.boxes.size(), form.pattern.size(),
                             room.boxes);
  auto* boxes = reinterpret_cast<StageBox*>(memory.extra);
  for (size_t i = 0; i < form.boxes.size(); ++i)
    boxes[i] = BoxOf(form.boxes[i], in_sizes.size());
  memcpy(memory.extra + room.pattern_at(), form.pattern.data(),
         form.pattern.size());
  map->table = memory.extra_at;
  map->count = form.boxes.size();
  StageOperand& in = map->in[form.fills_inside ? 1 : 0];
  StageOperand& pattern = map->in[form.fills_inside ? 0 : 1];
  in = map->in[0];
  pattern = {.at = memory.extra_at + room.pattern_at(), .dtype = in.dtype};
  if (form.pattern.size() > element) pattern.steps[in_sizes.size() - 1] = 1;
  const auto steps = DenseSteps(in_sizes);
  for (size_t axis = 0; axis < in_sizes.size(); ++axis) {
    in.steps[axis] = static_cast<int32_t>(steps[axis]);
    in.at += static_cast<uint64_t>(form.shift[axis] * steps[axis] *
                                   static_cast<int64_t>(element));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddBoxes(const Step& step, const KernelStep& operation,
                      StageBuilder* builder) {
  const Node& node = builder->graph().graph.nodes[step.node];
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  const size_t element = SizeOf(in.dtype);
  const size_t numbers = std::max<size_t>(
      {1, Numbers(node, "fill_value"), Numbers(node, "fill_values")});
  const BoxRoom room{.boxes = 1 + Numbers(node, "shape"),
                     .pattern_bytes = numbers * element};
  if (room.pattern_bytes > kMostPatternBytes)
    return Unimplemented("it fills with {} numbers", numbers);
  MapRow map;
  map.op = MapOp::kInBoxes;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::vector{in}, map,
      [step, room, in](const StageRow& row, const StageMemory& memory,
                       MapRow* map) -> absl::Status {
        ASSIGN_OR_RETURN(const auto form, FormFor<BoxForm>(step, row));
        return BindBoxes(form, room, row.SizesOf(in), memory, map);
      },
      room.bytes()));
  return absl::OkStatus();
}

absl::Status AddPaste(const Step& step, const KernelStep& operation,
                      StageBuilder* builder) {
  // Where sizes differ from row to row, both images of the row have one size,
  // or the CPU computes it: AddSizes has asked the operator.
  std::vector<StageTensor> operands = {builder->TensorOf(operation.inputs[1]),
                                       builder->TensorOf(operation.inputs[0])};
  MapRow map;
  map.op = MapOp::kInBoxes;
  map.count = 1;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::move(operands), map,
      [step](const StageRow& row, const StageMemory& memory,
             MapRow* map) -> absl::Status {
        ASSIGN_OR_RETURN(const auto form, FormFor<PasteForm>(step, row));
        const StageBox box = BoxOf(form.box, 3);
        memcpy(memory.extra, &box, sizeof box);
        map->table = memory.extra_at;
        return absl::OkStatus();
      },
      sizeof(StageBox)));
  return absl::OkStatus();
}

}  // namespace leat::worker
