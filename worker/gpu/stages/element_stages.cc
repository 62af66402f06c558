// SPDX-License-Identifier: Apache-2.0
//
// Operators element by element: arithmetic, choices, conversions, tables, and
// operators that only move elements.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"

namespace leat::worker {
namespace {

struct OpName {
  std::string_view name;
  MapOp op;
};

constexpr OpName kOpNames[] = {
    {"add", MapOp::kAdd},           {"sub", MapOp::kSub},
    {"mul", MapOp::kMul},           {"div", MapOp::kDiv},
    {"floordiv", MapOp::kFloorDiv}, {"min", MapOp::kMin},
    {"max", MapOp::kMax},           {"neg", MapOp::kNeg},
    {"abs", MapOp::kAbs},           {"lt", MapOp::kLess},
    {"le", MapOp::kLessOrEqual},    {"eq", MapOp::kEqual},
    {"ne", MapOp::kNotEqual},       {"bitwise_and", MapOp::kBitAnd},
    {"bitwise_or", MapOp::kBitOr},  {"bitwise_xor", MapOp::kBitXor}};

std::span<const std::byte> BytesOf(std::span<const float> values) {
  return std::as_bytes(values);
}

// Returns a form that does not depend on the row.
template <class Form>
absl::StatusOr<Form> ConstantForm(const KernelStep& operation) {
  ASSIGN_OR_RETURN(DeviceForm form,
                   operation.kernel->FormOf({{}, {}, SampleRng(0, 0, 0, 0)}));
  if (const auto* of_kind = std::get_if<Form>(&form)) return *of_kind;
  return Internal("operator {} has another form", operation.op);
}

// kInvalidArgument: a divisor of this row is 0.
MapStage::Adjust ChecksDivisor(uint32_t divisor, DType type) {
  return [divisor, type](const StageRow& row, const StageMemory&,
                         MapRow*) -> absl::Status {
    const Tensor& values = row.values()[divisor];
    const size_t bytes = SizeOf(values.dtype);
    for (size_t i = 0; i < values.elements(); ++i) {
      alignas(8) std::byte element[8] = {};
      Cast({values.dtype, 0, {}, values.data + i * bytes}, type, element);
      if (std::all_of(element, element + sizeof element,
                      [](std::byte b) { return b == std::byte{0}; }))
        return InvalidArgument("a divisor is 0");
    }
    return absl::OkStatus();
  };
}

}  // namespace

void AddCopy(const StageTensor& from, const StageTensor& to,
             StageBuilder* builder) {
  builder->Add(std::make_unique<MapStage>(to, std::vector{from}, MapRow{}));
}

absl::Status AddArithmetic(const Step& step, const KernelStep& operation,
                           StageBuilder* builder) {
  ASSIGN_OR_RETURN(const ArithmeticForm form,
                   ConstantForm<ArithmeticForm>(operation));
  MapRow map;
  map.type = form.type;
  map.computed = form.computed;
  const auto* name = std::ranges::find(kOpNames, form.op, &OpName::name);
  if (name == std::end(kOpNames))
    return Unimplemented("no arithmetic \"{}\"", form.op);
  map.op = name->op;
  std::vector<StageTensor> operands;
  for (const uint32_t input : operation.inputs)
    operands.push_back(builder->TensorOf(input));
  if (form.swapped) std::swap(operands[0], operands[1]);
  if (form.unary)
    operands.push_back(
        form.second.empty()
            ? operands[0]
            : builder->NewConstant(form.second.first(SizeOf(form.type)),
                                   form.type, {}));
  MapStage::Adjust adjust;
  if (form.divides && operands[1].in == StageTensor::In::kHost) {
    adjust = ChecksDivisor(operation.inputs[1], form.type);
  } else if (form.divides) {
    builder->AddFault();
    adjust = [](const StageRow& row, const StageMemory&, MapRow* map) {
      map->fault = row.FaultAddress();
      return absl::OkStatus();
    };
  }
  builder->Add(std::make_unique<MapStage>(builder->NewResult(step.node),
                                          std::move(operands), map,
                                          std::move(adjust)));
  return absl::OkStatus();
}

absl::Status AddLookup(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  ASSIGN_OR_RETURN(const LookupForm form, ConstantForm<LookupForm>(operation));
  const DType dtype = builder->TypeOf(step.node).dtype;
  const StageTensor table = builder->NewConstant(
      form.table, dtype, {static_cast<int64_t>(form.places + 1)});
  MapRow map;
  map.op = MapOp::kLookup;
  map.count = form.places;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node),
      std::vector{builder->TensorOf(operation.inputs[0])}, map,
      [table](const StageRow& row, const StageMemory&, MapRow* map) {
        map->table = row.AddressOf(table);
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

absl::Status AddOneHot(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  ASSIGN_OR_RETURN(const OneHotForm form, ConstantForm<OneHotForm>(operation));
  std::vector<std::byte> elements(form.off.begin(), form.off.end());
  elements.insert(elements.end(), form.on.begin(), form.on.end());
  const StageTensor table =
      builder->NewConstant(elements, builder->TypeOf(step.node).dtype, {2});
  const StageTensor from = builder->TensorOf(operation.inputs[0]);
  MapRow map;
  map.op = MapOp::kOneHot;
  map.count = form.classes;
  builder->AddFault();
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::vector{from}, map,
      [from, table](const StageRow& row, const StageMemory&, MapRow* map) {
        map->table = row.AddressOf(table);
        map->fault = row.FaultAddress();
        // The last axis is that of the classes. A value that counts as a scalar
        // has no other axis.
        const auto dense = DenseSteps(row.SizesOf(from));
        std::ranges::fill(map->in[0].steps, 0);
        for (uint32_t axis = 0; axis + 1 < map->rank; ++axis)
          map->in[0].steps[axis] = static_cast<int32_t>(dense[axis]);
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

absl::Status AddLinear(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  MapRow map;
  map.op = MapOp::kLinear;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node),
      std::vector{builder->TensorOf(operation.inputs[0])}, map,
      [step](const StageRow& row, const StageMemory&,
             MapRow* map) -> absl::Status {
        ASSIGN_OR_RETURN(const auto linear, FormFor<LinearForm>(step, row));
        map->factor = linear.factor;
        map->constant = linear.constant;
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

absl::Status AddNormalize(const Step& step, const NormalizeStep& normalize,
                          StageBuilder* builder) {
  const Normalizer& normalizer = normalize.normalizer;
  const auto channels = static_cast<int64_t>(normalizer.means().size());
  MapRow map;
  map.op = MapOp::kNormalize;
  map.constant = normalizer.shift();
  std::vector<StageTensor> operands = {
      builder->TensorOf(normalize.input),
      builder->NewConstant(BytesOf(normalizer.means()), DType::kFloat32,
                           {channels}),
      builder->NewConstant(BytesOf(normalizer.factors()), DType::kFloat32,
                           {channels})};
  builder->Add(std::make_unique<MapStage>(builder->NewResult(step.node),
                                          std::move(operands), map));
  return absl::OkStatus();
}

absl::Status AddCast(const Step& step, uint32_t input, StageBuilder* builder) {
  const StageTensor from = builder->TensorOf(input);
  if (from.dtype == builder->TypeOf(step.node).dtype)
    builder->Put(step.node, from);
  else
    AddCopy(from, builder->NewResult(step.node), builder);
  return absl::OkStatus();
}

absl::Status AddReshape(const Step& step, uint32_t input,
                        StageBuilder* builder) {
  StageTensor same = builder->TensorOf(input);
  same.shape = builder->TypeOf(step.node).shape;
  same.sized_by = builder->IsStatic(step.node) ? kNoValue : step.node;
  builder->Put(step.node, std::move(same));
  return absl::OkStatus();
}

absl::Status AddTranspose(const Step& step, const TransposeStep& transpose,
                          StageBuilder* builder) {
  const StageTensor from = builder->TensorOf(transpose.input);
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::vector{from}, MapRow{},
      [from, perm = transpose.perm](const StageRow& row, const StageMemory&,
                                    MapRow* map) {
        const auto dense = DenseSteps(row.SizesOf(from));
        for (size_t axis = 0; axis < perm.size(); ++axis)
          map->in[0].steps[axis] =
              static_cast<int32_t>(dense[static_cast<size_t>(perm[axis])]);
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

absl::Status AddWhere(const Step& step, uint32_t condition, uint32_t a,
                      uint32_t b, StageBuilder* builder) {
  const StageTensor out = builder->NewResult(step.node);
  std::vector<StageTensor> operands = {
      builder->TensorOf(condition), builder->TensorOf(a), builder->TensorOf(b)};
  MapRow map;
  map.op = MapOp::kWhere;
  if (!std::holds_alternative<WhereStep>(step.what)) {
    builder->Add(std::make_unique<MapStage>(out, std::move(operands), map));
    return absl::OkStatus();
  }
  if (out.by_row() && operands[0].in != StageTensor::In::kHost)
    return Unimplemented(
        "its flag is not the host's, who must know the result's size");
  // A value chosen for the whole sample is copied unconverted.
  const auto take = [out, operands](const StageRow& row, const StageMemory&,
                                    MapRow* map) {
    for (const size_t side : {1, 2})
      if (operands[side].dtype == out.dtype &&
          std::ranges::equal(row.SizesOf(operands[side]), row.SizesOf(out)))
        map->count |= uint64_t{1} << side;
    return absl::OkStatus();
  };
  builder->Add(std::make_unique<MapStage>(out, operands, map, take));
  return absl::OkStatus();
}

}  // namespace leat::worker
