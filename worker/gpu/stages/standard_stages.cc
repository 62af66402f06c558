// SPDX-License-Identifier: Apache-2.0
//
// standardize: a launch makes a mean and a factor of each group of elements, a
// second one uses them element by element. For an image (2, 2, 3) and the axes
// 0 and 1:
//
//   groups   3, of elements 0 3 6 9, 1 4 7 10 and 2 5 8 11
//   kept     size 3, step 1        summed   size 4, step 3
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"

namespace leat::worker {
namespace {

bool IsReduced(const StandardForm& form, size_t axis) {
  return (form.reduced >> axis & 1) != 0;
}

// Those of the value that are reduced, or those that are not.
StageAxes AxesOf(const StandardForm& form, Sizes sizes, bool reduced) {
  const auto steps = DenseSteps(sizes);
  StageAxes axes;
  bool one_run = false;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto size = static_cast<uint32_t>(sizes[axis]);
    const auto step = static_cast<uint32_t>(steps[axis]);
    if (IsReduced(form, axis) != reduced) {
      one_run = one_run && size == 1;
      continue;
    }
    if (one_run) {
      axes.sizes[axes.count - 1] *= size;
      axes.steps[axes.count - 1] = step;
      continue;
    }
    axes.sizes[axes.count] = size;
    axes.steps[axes.count++] = step;
    one_run = true;
  }
  return axes;
}

class StandardStage final : public Stage {
 public:
  // `means`, `deviations`: given, or of no elements.
  StandardStage(const StandardForm& form, const StageTensor& in,
                const StageTensor& means, const StageTensor& deviations,
                const StageTensor& out)
      : Stage(StageKind::kStandard, out, ThreadsFor(out)),
        form_(form),
        in_(in),
        means_(means),
        deviations_(deviations) {}

  size_t descriptor_bytes() const override { return sizeof(StandardRow); }
  std::vector<const StageTensor*> operands() const override { return {&in_}; }
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override {
    const Sizes sizes = row.SizesOf(in_);
    StandardRow result{.in = row.AddressOf(in_),
                       .in_dtype = in_.dtype,
                       .kept = AxesOf(form_, sizes, false),
                       .summed = AxesOf(form_, sizes, true),
                       .mean_step = form_.means.size() > 1,
                       .deviation_step = form_.deviations.size() > 1,
                       .ddof = form_.ddof,
                       .epsilon = form_.epsilon,
                       .scale = form_.scale};
    if (!form_.means.empty()) result.means = row.AddressOf(means_);
    if (!form_.deviations.empty())
      result.deviations = row.AddressOf(deviations_);
    uint64_t groups = 1;
    for (uint32_t axis = 0; axis < result.kept.count; ++axis)
      groups *= result.kept.sizes[axis];
    result.head = HeadOf(groups);
    memcpy(memory.descriptor, &result, sizeof result);
    return absl::OkStatus();
  }

 private:
  const StandardForm form_;  // what is given lies in the constants
  const StageTensor in_, means_, deviations_;
};

// Each group has a mean and a factor, two floats.
void BindStandard(const StandardForm& form, Sizes sizes, uint64_t statistics,
                  MapRow* map) {
  map->constant = form.shift;
  for (const int k : {1, 2}) {
    StageOperand& operand = map->in[k];
    operand = {.at = statistics + (k == 1 ? 0 : sizeof(float)),
               .dtype = DType::kFloat32};
    int64_t step = 2;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      if (IsReduced(form, axis)) continue;
      operand.steps[axis] = static_cast<int32_t>(step);
      step *= sizes[axis];
    }
  }
}

}  // namespace

absl::Status AddStandard(const Step& step, const KernelStep& operation,
                         StageBuilder* builder) {
  ASSIGN_OR_RETURN(const DeviceForm any,
                   operation.kernel->FormOf({{}, {}, SampleRng(0, 0, 0, 0)}));
  const auto& form = std::get<StandardForm>(any);
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  const auto doubles = [&](std::span<const double> values) {
    return builder->NewConstant(std::as_bytes(values), DType::kInt64,
                                {static_cast<int64_t>(values.size())});
  };
  const StageTensor means = doubles(form.means);
  const StageTensor deviations = doubles(form.deviations);
  // An element of eight bytes for the two floats of a group. Where the number
  // of groups is the row's own there are at most as many as elements.
  Shape groups;
  bool by_row = false;
  for (size_t axis = 0; axis < in.shape.size(); ++axis) {
    if (IsReduced(form, axis)) continue;
    groups.push_back(in.shape[axis]);
    by_row = by_row || in.shape[axis] < 1;
  }
  const StageTensor statistics = by_row
                                     ? builder->NewValueLike(DType::kInt64, in)
                                     : builder->NewValue(DType::kInt64, groups);
  builder->Add(
      std::make_unique<StandardStage>(form, in, means, deviations, statistics));
  MapRow map;
  map.op = MapOp::kNormalize;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::vector{in, statistics}, map,
      [form, in, statistics](const StageRow& row, const StageMemory&,
                             MapRow* map) {
        BindStandard(form, row.SizesOf(in), row.AddressOf(statistics), map);
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

}  // namespace leat::worker
