// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/builder.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/status.h"
#include "worker/gpu/layout/fused_layout.h"

namespace leat::worker {
namespace {

// With more launches a GPU is not worth it, and the time to find places for
// their values grows with the square of their number.
constexpr size_t kMostStages = 1024;

struct FamilyOf {
  std::string_view op;
  KernelFamily* add;
};

// The host computes operators without a line here.
constexpr FamilyOf kFamilies[] = {
    {"abs", AddArithmetic},
    {"add", AddArithmetic},
    {"bitwise_and", AddArithmetic},
    {"bitwise_or", AddArithmetic},
    {"bitwise_xor", AddArithmetic},
    {"augment", AddAugment},
    {"auto_augment", AddAugment},
    {"brightness", AddLinear},
    {"brightness_contrast", AddLinear},
    {"color_space_conversion", AddMatrix},
    {"color_twist", AddMatrix},
    {"contrast", AddLinear},
    {"crop_mirror_normalize", AddWindow},
    {"cutmix_paste", AddPaste},
    {"div", AddArithmetic},
    {"eq", AddArithmetic},
    {"equalize", AddAugment},
    {"erase", AddBoxes},
    {"floordiv", AddArithmetic},
    {"gaussian_blur", AddBlur},
    {"ge", AddArithmetic},
    {"gt", AddArithmetic},
    {"hsv", AddMatrix},
    {"hue", AddMatrix},
    {"invert", AddArithmetic},
    {"le", AddArithmetic},
    {"lookup_table", AddLookup},
    {"lt", AddArithmetic},
    {"max", AddArithmetic},
    {"min", AddArithmetic},
    {"mul", AddArithmetic},
    {"ne", AddArithmetic},
    {"neg", AddArithmetic},
    {"noise_gaussian", AddNoise},
    {"noise_salt_and_pepper", AddNoise},
    {"noise_shot", AddNoise},
    {"one_hot", AddOneHot},
    {"pad", AddBoxes},
    {"rand_augment", AddAugment},
    {"rotate", AddWarp},
    {"saturation", AddMatrix},
    {"slice", AddBoxes},
    {"standardize", AddStandard},
    {"sub", AddArithmetic},
    {"trivial_augment_wide", AddAugment},
    {"warp_affine", AddWarp},
};

absl::Status AddKernel(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  if (operation.op == "reshape")
    return AddReshape(step, operation.inputs[0], builder);
  if (operation.op == "where")
    return AddWhere(step, operation.inputs[0], operation.inputs[1],
                    operation.inputs[2], builder);
  for (const FamilyOf& family : kFamilies)
    if (family.op == operation.op) return family.add(step, operation, builder);
  return Unimplemented("the operator has no kernel on a GPU");
}

bool IsSame(const StageTensor& a, const StageTensor& b) {
  return a.in == b.in && a.index == b.index;
}

struct Adder {
  const Step& step;
  StageBuilder* builder;

  absl::Status operator()(const KernelStep& operation) const {
    return AddKernel(step, operation, builder);
  }
  absl::Status operator()(const ImageStep& image) const {
    return AddView(step, image, builder);
  }
  absl::Status operator()(const NormalizeStep& normalize) const {
    return AddNormalize(step, normalize, builder);
  }
  absl::Status operator()(const CastStep& cast) const {
    return AddCast(step, cast.input, builder);
  }
  absl::Status operator()(const TransposeStep& transpose) const {
    return AddTranspose(step, transpose, builder);
  }
  absl::Status operator()(const WhereStep& where) const {
    return AddWhere(step, where.condition, where.a, where.b, builder);
  }
  template <class Other>
  absl::Status operator()(const Other&) const {
    return Unimplemented("the operator has no kernel on a GPU");
  }
};

}  // namespace

uint64_t StageTensor::elements() const { return ElementsOf(Sizes(shape)); }

uint64_t ElementsOf(Sizes sizes) {
  uint64_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<uint64_t>(size);
  return count;
}

Sizes StageRow::SizesOf(const StageTensor& tensor) const {
  if (!tensor.by_row()) return tensor.shape;
  const Tensor& value = values()[tensor.sized_by];
  return {value.dims.data(), static_cast<size_t>(value.rank)};
}

absl::StatusOr<DeviceForm> FormOf(const Step& step, const StageRow& row) {
  const auto& operation = std::get<KernelStep>(step.what);
  absl::InlinedVector<const Tensor*, 4> inputs, args;
  for (const uint32_t input : operation.inputs)
    inputs.push_back(&row.values()[input]);
  for (const uint32_t arg : operation.args)
    args.push_back(arg == kNoValue ? nullptr : &row.values()[arg]);
  return operation.kernel->FormOf(
      {inputs, args, DrawsOf(row.input(), step.node, operation.per_batch)});
}

absl::StatusOr<const DeviceForm*> StageRow::FormOnce(const Step& step) const {
  if (form_of_ != step.node) {
    form_of_ = kNoValue;
    ASSIGN_OR_RETURN(form_, FormOf(step, *this));
    form_of_ = step.node;
  }
  return &form_;
}

const ValueType& StageBuilder::TypeOf(uint32_t value) const {
  const auto nodes = static_cast<uint32_t>(graph_.graph.nodes.size());
  return value < nodes ? graph_.types[value][0]
                       : graph_.types[graph_.stored][value - nodes];
}

bool StageBuilder::IsStatic(uint32_t value) const {
  const ValueType& type = TypeOf(value);
  return type.kind == ValueType::Kind::kTensor &&
         std::ranges::all_of(type.shape, [](int64_t n) { return n > 0; });
}

std::vector<Tensor> StageBuilder::Shapes(size_t values) const {
  std::vector<Tensor> shapes(values);
  for (uint32_t value = 0; value < values; ++value) {
    if (value == graph_.reader || value == graph_.stored || !IsStatic(value))
      continue;
    const ValueType& type = TypeOf(value);
    Tensor& tensor = shapes[value];
    tensor.dtype = type.dtype;
    tensor.rank = static_cast<int>(type.shape.size());
    std::ranges::copy(type.shape, tensor.dims.begin());
  }
  return shapes;
}

bool StageBuilder::Has(uint32_t value) const {
  const auto& tensors = tensors_[whose_];
  return value < tensors.size() && tensors[value].has_value();
}

StageTensor StageBuilder::TensorOf(uint32_t value) const {
  return *tensors_[whose_][value];
}

void StageBuilder::Put(uint32_t value, StageTensor tensor) {
  auto& tensors = tensors_[whose_];
  if (tensors.size() <= value) tensors.resize(value + 1);
  tensors[value] = std::move(tensor);
}

StageTensor StageBuilder::NewValue(DType dtype, Shape shape,
                                   uint32_t sized_by) {
  StageTensor tensor{.index = static_cast<uint32_t>(value_bytes_.size()),
                     .dtype = dtype,
                     .shape = std::move(shape),
                     .sized_by = sized_by};
  if (tensor.by_row())
    value_bytes_.push_back({.each = SizeOf(dtype)});
  else
    value_bytes_.push_back({.all = tensor.bytes()});
  return tensor;
}

StageTensor StageBuilder::NewConstant(std::span<const std::byte> bytes,
                                      DType dtype, Shape shape) {
  constants_.resize(Aligned(constants_.size()));
  const StageTensor tensor{.in = StageTensor::In::kConstants,
                           .index = static_cast<uint32_t>(constants_.size()),
                           .dtype = dtype,
                           .shape = std::move(shape)};
  constants_.insert(constants_.end(), bytes.begin(), bytes.end());
  return tensor;
}

StageTensor StageBuilder::NewResult(uint32_t node) {
  const ValueType& type = TypeOf(node);
  StageTensor tensor =
      NewValue(type.dtype, type.shape, IsStatic(node) ? kNoValue : node);
  Put(node, tensor);
  return tensor;
}

void StageBuilder::Add(std::unique_ptr<Stage> stage) {
  stage->BelongTo(whose_);
  stages_.push_back(std::move(stage));
}

absl::Status AddStages(const Step& step, const std::vector<uint32_t>& inputs,
                       StageBuilder* builder) {
  const auto by_row = [&](uint32_t value) { return !builder->IsStatic(value); };
  if (by_row(step.node) || std::ranges::any_of(inputs, by_row))
    builder->AddSizes(step);
  RETURN_IF_ERROR(std::visit(Adder{step, builder}, step.what));
  if (builder->stages().size() <= kMostStages) return absl::OkStatus();
  return Unimplemented("the pipeline has over {} launches", kMostStages);
}

void AddFieldOf(uint32_t value, uint32_t output,
                const std::vector<uint32_t>& outputs, StageBuilder* builder) {
  const StageTensor from = builder->TensorOf(value);
  const StageTensor field{.in = StageTensor::In::kField,
                          .index = output,
                          .dtype = from.dtype,
                          .shape = from.shape};
  std::vector<Stage*> writers;
  bool only = true;
  for (const auto& stage : builder->stages()) {
    if (IsSame(stage->out(), from)) {
      writers.push_back(stage.get());
      only = only && stage->out().shape == from.shape;
    }
    for (const StageTensor* operand : stage->operands())
      only = only && !IsSame(*operand, from);
  }
  size_t wanted = 0;
  for (const uint32_t other : outputs)
    wanted += builder->Has(other) && IsSame(builder->TensorOf(other), from);
  if (writers.empty() || !only || wanted > 1)
    return AddCopy(from, field, builder);
  for (Stage* writer : writers) writer->WriteTo(field);
}

}  // namespace leat::worker
