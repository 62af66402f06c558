// SPDX-License-Identifier: Apache-2.0
//
// standardize: launches add the runs of each group of elements, then the
// squares of their distances from the mean; one computes a mean and a factor
// per group, and the last one uses them element by element. Given values are
// not computed. For an image (40, 40, 3) and the axes 0 and 1:
//
//   groups   3, of elements 0 3 6 …, 1 4 7 … and 2 5 8 …, each of two runs
//   kept     size 3, step 1        summed   size 1600, step 3
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"
#include "worker/gpu/stages/row_stage.h"
#include "worker/image/formulas/statistics.h"

namespace leat::worker {
namespace {

bool IsReduced(const StandardForm& form, size_t axis) {
  return (form.reduced >> axis & 1) != 0;
}

// Returns the axes of the value that are reduced, or those that are not.
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

// The common tensors of a node's launches. `means`, `deviations`: given, or
// without elements. `sums`, `squares`: doubles, set if a group may have several
// runs and they are not given.
struct StandardTensors {
  StageTensor in, means, deviations;
  std::optional<StageTensor> sums, squares;
};

uint64_t CountOf(const StageAxes& axes) {
  uint64_t count = 1;
  for (uint32_t axis = 0; axis < axes.count; ++axis) count *= axes.sizes[axis];
  return count;
}

uint64_t RunsOf(uint64_t elements) {
  return (elements + kStandardRun - 1) / kStandardRun;
}

// A single run is added by the launch that needs its sum.
uint64_t ThreadsOf(const StandardRow& row) {
  if (row.part == StandardPart::kFactors) return row.groups;
  return row.runs == 1 ? 0 : uint64_t{row.groups} * row.runs;
}

StandardRow StandardRowOf(StandardPart part, const StandardForm& form,
                          const StandardTensors& tensors, const StageRow& row) {
  const Sizes sizes = row.SizesOf(tensors.in);
  StandardRow result{.part = part,
                     .in = row.AddressOf(tensors.in),
                     .in_dtype = tensors.in.dtype,
                     .kept = AxesOf(form, sizes, false),
                     .summed = AxesOf(form, sizes, true),
                     .mean_step = form.means.size() > 1,
                     .deviation_step = form.deviations.size() > 1,
                     .ddof = form.ddof,
                     .epsilon = form.epsilon,
                     .scale = form.scale};
  result.groups = static_cast<uint32_t>(CountOf(result.kept));
  result.runs = static_cast<uint32_t>(RunsOf(CountOf(result.summed)));
  if (!form.means.empty()) result.means = row.AddressOf(tensors.means);
  if (!form.deviations.empty())
    result.deviations = row.AddressOf(tensors.deviations);
  if (tensors.sums) result.sums = row.AddressOf(*tensors.sums);
  if (tensors.squares) result.squares = row.AddressOf(*tensors.squares);
  result.head = HeadOf(ThreadsOf(result));
  return result;
}

void AddPart(StandardPart part, const StandardForm& form,
             const StandardTensors& tensors, const StageTensor& out,
             StageBuilder* builder) {
  std::vector<StageTensor> used = {tensors.in};
  if (tensors.sums) used.push_back(*tensors.sums);
  if (tensors.squares) used.push_back(*tensors.squares);
  builder->Add(std::make_unique<RowStage<StandardRow>>(
      StageKind::kStandard, std::move(used), out, ThreadsFor(out),
      [part, form, tensors](const StageRow& row, const StageMemory&) {
        return StandardRowOf(part, form, tensors, row);
      }));
}

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
  StandardTensors tensors;
  tensors.in = builder->TensorOf(operation.inputs[0]);
  const StageTensor& in = tensors.in;
  const auto doubles = [&](std::span<const double> values) {
    return builder->NewConstant(std::as_bytes(values), DType::kInt64,
                                {static_cast<int64_t>(values.size())});
  };
  tensors.means = doubles(form.means);
  tensors.deviations = doubles(form.deviations);
  Shape groups;
  int64_t elements = 1;  // in a group
  bool by_row = false;   // if the number of groups differs from row to row
  for (size_t axis = 0; axis < in.shape.size(); ++axis) {
    if (IsReduced(form, axis)) {
      elements *= in.shape[axis];
      continue;
    }
    groups.push_back(in.shape[axis]);
    by_row = by_row || in.shape[axis] < 1;
  }
  // Doubles for runs. If sizes differ from row to row, a byte per element is
  // more than they take: if a group has several runs, a run has at least 512
  // elements on average.
  const auto of_runs = [&]() -> std::optional<StageTensor> {
    if (in.by_row()) return builder->NewValueLike(DType::kUint8, in);
    const uint64_t runs = RunsOf(static_cast<uint64_t>(elements));
    if (runs == 1) return std::nullopt;
    Shape shape = groups;
    shape.push_back(static_cast<int64_t>(runs));
    return builder->NewValue(DType::kInt64, shape);
  };
  const auto add = [&](StandardPart part, const StageTensor& out) {
    AddPart(part, form, tensors, out, builder);
  };
  if (form.means.empty()) {
    const std::optional<StageTensor> sums = of_runs();
    if (sums) add(StandardPart::kSums, *sums);
    tensors.sums = sums;
  }
  if (form.deviations.empty()) {
    const std::optional<StageTensor> squares = of_runs();
    if (squares) add(StandardPart::kSquares, *squares);
    tensors.squares = squares;
  }
  // Two floats per group. If the number of groups differs from row to row,
  // there are at most as many groups as elements.
  const StageTensor statistics = by_row
                                     ? builder->NewValueLike(DType::kInt64, in)
                                     : builder->NewValue(DType::kInt64, groups);
  add(StandardPart::kFactors, statistics);
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
